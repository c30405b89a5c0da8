// Floating-point comparisons, relative: the framework's default is loose.
#pragma once

#include "tests/support/catch.hpp"

namespace stepsim {

using Catch::WithinRel;

// Equal up to the rounding of a few additions.
inline auto exactly(double expected) {
  return WithinRel(expected, 1e-12);
}

}  // namespace stepsim
