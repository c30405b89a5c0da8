// These are the keys of a scenario's strategy block and of the blocks in it.
#pragma once

#include <span>

#include "scenarios/keys/key.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Returns the blocks in the order of reading: a default may follow from what stands above it.
std::span<const Block<Strategy>> strategy_blocks();

}  // namespace stepsim
