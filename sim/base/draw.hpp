// Draws of constants from their ranges: the same name gets the same draw in every file and
// scenario, so two scenarios are compared under the same luck.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/constant.hpp"

namespace stepsim {

// A draw is one of `of` samples of a Latin hypercube: over all samples every constant visits every
// slice of its range once, in an order of its own.
struct Draw {
  std::uint64_t seed = 1;
  std::uint32_t sample = 0;
  std::uint32_t of = 1;
};

// Returns where in its range the constant is drawn, between 0 and 1.
double quantile(const Draw& draw, std::string_view name);

// The stated value is the median; below it the range is uniform down to low, above it up to high.
// Words are equally likely.
double value_at(const NamedConstant& constant, double quantile);

}  // namespace stepsim
