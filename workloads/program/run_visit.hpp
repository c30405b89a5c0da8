// What a rank does for one call of a unit, whoever shards its parameters.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Its kernels, what the host waits for, and the exchange of tokens around it.
Mark run_visit(StepWriter& writer, const Visit& visit);

// Behind the last backward pass, where ranks divide tokens between blocks: gradients of norms.
void sum_norms(StepWriter& writer, const std::vector<Visit>& visits);

}  // namespace stepsim
