// Tests write networks as YAML with these.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stepsim {

inline std::string constant(const std::string& value) {
  return "{value: " + value + ", low: " + value + ", high: " + value +
         ", grade: guess, source: made up for a test}";
}

inline SwitchNetwork switches_in(const std::string& text, std::uint32_t ports, double port) {
  const Document document = parse_document(text, "network.yaml");
  SwitchNetwork made = read_switches(document.root(), ports, {port});
  document.finish();
  return made;
}

// Returns the same cluster on such a network.
inline Cluster wired(Cluster cluster, const std::string& text) {
  const std::uint32_t nics = cluster.node.count(PartKind::nic);
  const Network& network = *cluster.network;
  const std::uint32_t ports = network.ports > 0 ? std::min(network.ports, nics) : nics;
  std::vector<std::uint32_t> places(cluster.nodes);
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) places[node] = cluster.place(node);
  cluster.routes = ways_through(switches_in(text, ports, network.port.number()), places, nics);
  return cluster;
}

}  // namespace stepsim
