// Every machine of the catalogue in the sizes that can be replayed without folding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stepsim {

struct MachineSize {
  std::string name;  // of a node or a cluster
  std::uint32_t nodes = 1;
};

// 2, 3, 4 nodes and as many as have at most that many ranks; one node too where `alone`.
std::vector<MachineSize> node_machines(std::uint32_t most_ranks, bool alone);
// Of clusters only those that join their nodes by another network than usual.
std::vector<MachineSize> cluster_machines(std::uint32_t most_ranks);

Cluster load(const MachineSize& size);

// Two nodes per leaf, so that three and more nodes cross the uplinks, which are narrow.
std::vector<Cluster> leafy_clusters();

}  // namespace stepsim
