// This is the traffic of a step, planned and folded.
#pragma once

#include "workloads/program/program_builder.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// Returns a step's traffic. Most steps of a study differ in what carries no traffic: the last few
// different ones are kept.
Traffic step_traffic(const RankPart& rank, Folding folding);

}  // namespace stepsim
