// What a release of DeepSpeed does that others do not.
#pragma once

#include "sim/base/config.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// `deepspeed_version: 0.18.5` of a strategy; without it, what most releases do.
void read_deepspeed_version(const Table& table, Strategy& strategy);

}  // namespace stepsim
