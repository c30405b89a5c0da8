// These rules say what may be kept in host memory or on drives, and what has to be large enough for
// that.
#pragma once

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Notes at `offload`, the table of that name, what DeepSpeed rejects and what is not modelled.
// `found`: the scenario has its model and its cluster.
void check_offload(const Table& offload, const Scenario& scenario, bool found);

}  // namespace stepsim
