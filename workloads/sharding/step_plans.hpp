// The traffic of a step.
#pragma once

#include "workloads/program/plans.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// Only what the strategy uses takes part in folding: the trees of a large all-reduce tell nodes
// apart that a ring does not.
Plans step_plans(const RankPart& rank);

}  // namespace stepsim
