// What a precision makes of the units of a model: the type of their products, the kernels that cast
// around them, and what of a product's input is kept.
#pragma once

#include <span>

#include "workloads/layers/units.hpp"

namespace stepsim {

// Of so many micro-batches all may share the cast of a weight.
void apply_precision(std::span<Unit> units, const Stack& stack, const Strategy& strategy,
                     double micro_batches);

// Whether layers that are computed again lose the type of their products: modules of a library
// hold it while the forward pass runs, and are called again outside of that.
bool loses_type_again(const Stack& stack, const Strategy& strategy);
// From the recomputation on, units run as their counterparts in 16 bits do.
void run_again_as(std::span<Unit> units, std::span<const Unit> in_16_bits);

}  // namespace stepsim
