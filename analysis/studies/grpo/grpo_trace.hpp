// This makes a trace of a GRPO run: one row of operations for the learners, one for each engine.
#pragma once

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Rank 0 stands for all learners, the ranks behind it for engines.
Run grpo_trace(const Scenario& scenario, const GrpoPrediction& prediction);

}  // namespace stepsim
