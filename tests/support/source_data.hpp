// The catalogue in the source tree, that tests read.
#pragma once

#include "topology/catalog.hpp"

namespace stepsim {

inline const Catalogue& source_data() {
  static const Catalogue data({STEPSIM_SOURCE_DATA});
  return data;
}

}  // namespace stepsim
