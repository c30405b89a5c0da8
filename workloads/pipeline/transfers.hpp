// These write what stages send each other, as traffic over the real links.
#pragma once

#include "workloads/program/plans.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {

void plan_stages(Plans& plans, const Cluster& cluster, const Mesh& mesh, PipelineWay way);

}  // namespace stepsim
