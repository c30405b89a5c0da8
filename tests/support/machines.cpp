#include "tests/support/machines.hpp"

#include "tests/support/source_data.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

void add_sizes(std::vector<MachineSize>& sizes, const std::string& name,
               const std::vector<std::uint32_t>& counts, std::uint32_t most) {
  const Cluster one = load({name, 1});
  for (const std::uint32_t count : counts) {
    const std::uint32_t nodes = count == to_the_brim ? most / one.gpus_per_node() : count;
    const bool fits = nodes > 0 && nodes * one.gpus_per_node() <= most;
    if (fits && (nodes == 1 || !one.node.network.empty())) sizes.push_back({name, nodes});
  }
}

}  // namespace

std::vector<MachineSize> node_machines(const std::vector<std::uint32_t>& counts,
                                       std::uint32_t most) {
  std::vector<MachineSize> sizes;
  for (const std::string& name : names_on(source_data(), node_shelf))
    add_sizes(sizes, name, counts, most);
  return sizes;
}

std::vector<MachineSize> cluster_machines(const std::vector<std::uint32_t>& counts,
                                          std::uint32_t most) {
  std::vector<MachineSize> sizes;
  for (const std::string& name : names_on(source_data(), cluster_shelf))
    if (const Cluster cluster = load({name, 2}); cluster.network->name != cluster.node.network)
      add_sizes(sizes, name, counts, most);
  return sizes;
}

Cluster load(const MachineSize& size) {
  return load_cluster(source_data(), {.name = size.name, .nodes = size.nodes});
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
