// These write what stages send each other, as traffic over the real links.
#pragma once

#include "workloads/program/plans.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {

// The first of each pair sends all of its buffer to the second.
CollectivePlan plan_sends(const Cluster& cluster, std::vector<Group> pairs);

void plan_stages(Plans& plans, const Cluster& cluster, const Mesh& mesh, PipelineWay way);

}  // namespace stepsim
