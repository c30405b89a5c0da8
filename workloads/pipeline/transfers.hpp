// What stages send each other, as traffic over the real links.
#pragma once

#include <vector>

#include "workloads/collectives/plan.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {

// Plans of a pipeline, behind those of a step.
enum class StagePlan : std::size_t {
  to_next,      // every rank to the one of equal place in the next stage, the last to the first
  to_previous,  // and the other way
  ends,         // a sum over ranks of equal place in the first and the last stage
};
std::vector<CollectivePlan> stage_plans(const Cluster& cluster, const Mesh& mesh);

}  // namespace stepsim
