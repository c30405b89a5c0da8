// What a precision makes of the units of a model: the type of their products, the kernels that cast
// around them, and what of a product's input is kept.
#pragma once

#include <span>

#include "workloads/layers/units.hpp"

namespace stepsim {

// Of so many micro-batches all may share the cast of a weight.
void apply_precision(std::span<Unit> units, const Stack& stack, const Strategy& strategy,
                     double micro_batches);

}  // namespace stepsim
