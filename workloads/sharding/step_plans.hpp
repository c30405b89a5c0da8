// The traffic of a step.
#pragma once

#include "workloads/program/plans.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// What of a rank's part decides about traffic; nothing else does, but the cluster.
struct TrafficNeeds {
  Strategy strategy;
  Mesh mesh;
  bool experts = false;  // the model has some

  friend bool operator==(const TrafficNeeds&, const TrafficNeeds&) = default;
};
TrafficNeeds needs_of(const RankPart& rank);

// Only what the strategy uses takes part in folding: the trees of a large all-reduce tell nodes
// apart that a ring does not.
Plans step_plans(const Cluster& cluster, const TrafficNeeds& needs);

}  // namespace stepsim
