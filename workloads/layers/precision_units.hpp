// A precision changes the units of a model: the type of their products, the kernels that cast
// around them, and what of a product's input is kept.
#pragma once

#include <span>

#include "workloads/layers/units.hpp"

namespace stepsim {

// Applies the precision to the units; so many micro-batches may share the cast of a weight.
void apply_precision(std::span<Unit> units, const Stack& stack, const Strategy& strategy,
                     double micro_batches);

// Returns whether modules of a library lose the type of their products where PyTorch calls them
// again: they know it while the forward pass runs, and are called again outside of that. Kernels of
// attention or of an activation that run again by themselves call none.
bool loses_type_again(const Stack& stack, const Strategy& strategy);
// A policy of operators keeps the graph of the forward pass (use_reentrant: false), and PyTorch
// ends a run whose tensors come back in another type.
bool ends_in_recomputation(const Stack& stack, const Strategy& strategy);
// Units whose products run again in `wide`, which are checkpointed, are from there on as they were
// made, in 16 bits; to be called before they are checkpointed themselves, ...
void forget_type(std::span<Unit> units, std::span<const Unit> made, std::span<const Unit> wide);
// ... and behind that, for what they run again.
void run_again_as(std::span<Unit> units, std::span<const Unit> wide);

}  // namespace stepsim
