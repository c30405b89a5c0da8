// The job block of a scenario that is no GRPO job: what a step works on, how long the run is, what
// is saved on the way.
#pragma once

#include "sim/base/config.hpp"
#include "topology/cluster.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

Job read_job(const Table& table);
// Notes what this machine cannot do, and steps that the run does not have.
void check_job(const Table& table, const Job& job, const Strategy& strategy,
               const Cluster& cluster);

}  // namespace stepsim
