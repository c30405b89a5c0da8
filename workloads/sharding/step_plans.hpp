// This plans the traffic of a step.
#pragma once

#include "workloads/program/plans.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// These are the facts about a rank's part that decide about traffic; nothing else does, but the
// cluster.
struct TrafficNeeds {
  Strategy strategy;
  Mesh mesh;
  bool experts = false;  // the model has some

  friend bool operator==(const TrafficNeeds&, const TrafficNeeds&) = default;
};
TrafficNeeds needs_of(const RankPart& rank);

// Returns the plans that the strategy uses; others take no part in folding, as the trees of a large
// all-reduce tell nodes apart that a ring does not.
Plans step_plans(const Cluster& cluster, const TrafficNeeds& needs);

}  // namespace stepsim
