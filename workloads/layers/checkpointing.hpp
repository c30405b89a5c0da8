// What of a layer stays in memory between its forward and its backward pass, and what is computed
// again instead.
#pragma once

#include "workloads/layers/units.hpp"

namespace stepsim {

// Fills in what the units of one layer keep and what the recomputation runs.
void checkpoint_layer(std::vector<Unit>& units, const Stack& stack, const Strategy& strategy,
                      double input_bytes, std::int64_t layer);

}  // namespace stepsim
