// Faults are GPUs and links of a scenario's machine that are slower than its files say, or become
// so.
#pragma once

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

struct Variation {
  Constant<Ratio> gpu_time;  // spread of a kernel's time between GPUs
};

// Puts `slow_gpus`, `slow_links`, `events` and `vary` of a scenario's cluster block into its
// cluster.
void read_faults(const Table& cluster, const Variation& variation, Scenario& scenario);
// Returns whether any of them is asked for.
bool asks_for_faults(const Table& cluster);

}  // namespace stepsim
