// These are all machines of the catalogue in the sizes that can be replayed without folding.
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

// Each node file in these numbers of nodes, as far as it has a network and so many ranks are
// allowed. `to_the_brim` stands for as many nodes as are allowed.
inline constexpr std::uint32_t to_the_brim = 0;
std::vector<MachineSize> node_machines(const std::vector<std::uint32_t>& counts,
                                       std::uint32_t ranks);
// Returns the same for those clusters that join their nodes by another network than usual.
std::vector<MachineSize> cluster_machines(const std::vector<std::uint32_t>& counts,
                                          std::uint32_t ranks);

Cluster load(const MachineSize& size);

// Two nodes per leaf, so that three and more nodes cross the uplinks, which are narrow.
std::vector<Cluster> leafy_clusters();

}  // namespace stepsim
