// Adapters leave the rest of a model frozen in 32 bits under autocast: PyTorch casts the weights of
// each product, modules of 4 bits their inputs, and what lies between products stays as wide as the
// embedding has made it.
#pragma once

#include <span>

#include "workloads/layers/units.hpp"

namespace stepsim {

bool widens_frozen(const Strategy& strategy);
void widen_frozen(std::span<Unit> units, const Strategy& strategy);

}  // namespace stepsim
