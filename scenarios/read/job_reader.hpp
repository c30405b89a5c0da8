// The job block of a scenario that is no GRPO job: what a step works on, how long the run is, what
// is saved on the way.
#pragma once

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

Job read_job(const Table& table);
// Fills in what follows from the machine, the strategy and DeepSpeed's file; notes what cannot be,
// and steps that the run does not have.
void finish_job(const Table& table, Scenario& scenario);

}  // namespace stepsim
