// A release of DeepSpeed does things that others do not; this says which.
#pragma once

#include "sim/base/config.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Reads `deepspeed_version: 0.18.5` of a strategy; without it, what most releases do holds.
void read_deepspeed_version(const Table& table, Strategy& strategy);

}  // namespace stepsim
