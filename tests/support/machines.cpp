#include "tests/support/machines.hpp"

#include <algorithm>

#include "tests/support/tiny_cluster.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

void add_sizes(std::vector<MachineSize>& sizes, const std::string& name, std::uint32_t first,
               std::uint32_t most_ranks) {
  const std::uint32_t gpus = load({name, 1}).gpus_per_node();
  std::vector<std::uint32_t> counts{2, 3, 4, most_ranks / gpus};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const std::uint32_t nodes : counts)
    if (nodes >= first && nodes * gpus <= most_ranks) sizes.push_back({name, nodes});
}

}  // namespace

std::vector<MachineSize> node_machines(std::uint32_t most_ranks, bool alone) {
  std::vector<MachineSize> sizes;
  for (const std::string& name : names_on(STEPSIM_SOURCE_DATA, node_shelf)) {
    if (alone) sizes.push_back({name, 1});
    if (!load({name, 1}).node.network.empty()) add_sizes(sizes, name, 2, most_ranks);
  }
  return sizes;
}

std::vector<MachineSize> cluster_machines(std::uint32_t most_ranks) {
  std::vector<MachineSize> sizes;
  for (const std::string& name : names_on(STEPSIM_SOURCE_DATA, cluster_shelf))
    if (const Cluster cluster = load({name, 2}); cluster.network->name != cluster.node.network)
      add_sizes(sizes, name, 2, most_ranks);
  return sizes;
}

Cluster load(const MachineSize& size) {
  return load_cluster(STEPSIM_SOURCE_DATA, {.name = size.name, .nodes = size.nodes});
}

std::vector<Cluster> leafy_clusters() {
  std::vector<Cluster> clusters;
  for (const Fabric fabric : {Fabric::in_switch, Fabric::mesh, Fabric::pairs})
    for (const std::uint32_t nodes : {2u, 3u, 4u, 5u, 7u})
      for (const bool per_rail : {false, true})
        clusters.push_back(tiny_cluster({.fabric = fabric,
                                         .nodes = nodes,
                                         .nics = per_rail ? 0u : 2u,
                                         .leaf_nodes = 2,
                                         .per_rail = per_rail,
                                         .pcie = 30e9,
                                         .port = 5e9,
                                         .uplink = 7e9}));
  return clusters;
}

}  // namespace stepsim
