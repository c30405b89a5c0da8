// This says what of a layer stays in memory between its forward and its backward pass, and what is
// computed again instead.
#pragma once

#include "workloads/layers/units.hpp"

namespace stepsim {

// Returns whether the layer is computed again; with checkpoint_every above 1 not all are.
bool is_checkpointed(const Strategy& strategy, std::int64_t layer);

// Returns whether recomputation uses hooks on all that operators save, and runs only up to the last
// of these.
bool stops_early(const Stack& stack, const Strategy& strategy);

// Fills in what the units of one layer keep and what the recomputation runs.
void checkpoint_layer(std::vector<Unit>& units, const Stack& stack, const Strategy& strategy,
                      double input_bytes, std::int64_t layer);

}  // namespace stepsim
