// A hierarchical collective runs one in the nodes, and one between them.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

Schedule hierarchical_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

}  // namespace stepsim
