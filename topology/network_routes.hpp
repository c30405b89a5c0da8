// These are the ways between nodes over a network that is known cable by cable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/routes.hpp"
#include "topology/switches.hpp"

namespace stepsim {

// An end is where a node begins: a NIC of it, or all of it. Ends count up node by node.
struct NetworkRoutes {
  std::vector<NodeLink> lines;  // those that somebody can cross
  std::uint32_t ends_of_node = 1;
  std::vector<std::uint32_t> row_of;   // [end]: ends behind one switch have the same ways to others
  std::vector<std::string> starts;     // [row]: that switch, or the end itself
  std::vector<std::uint32_t> first;    // [row * ends + end]: into `crossed`
  std::vector<std::uint32_t> crossed;  // lines, and `no_way` where there is none
  Seconds latency{};                   // of the way that takes longest
  std::vector<std::uint32_t> nodes;    // those of the ways that there are nodes of; empty: all
  bool has_ports = true;  // ways begin and end behind the ports of nodes; else ports are lines, too
  bool of_gpus = false;   // ways begin and end at GPUs, without a node's own links

  static constexpr std::uint32_t no_way = SwitchNetwork::nowhere;

  std::uint32_t ends() const { return static_cast<std::uint32_t>(row_of.size()); }
  std::uint32_t node(std::uint32_t node_of_job) const {
    return nodes.empty() ? node_of_job : nodes[node_of_job];
  }
  std::uint32_t end(std::uint32_t node_of_job, std::uint32_t nic) const {
    return node(node_of_job) * ends_of_node + nic % ends_of_node;
  }
  // Returns the lines in their order, none where both are behind one switch; nothing where no way
  // leads.
  std::optional<std::span<const std::uint32_t>> way(std::uint32_t from, std::uint32_t to) const;

  friend bool operator==(const NetworkRoutes&, const NetworkRoutes&) = default;
};

// Finds the ways with the fewest cables. Among equally short ways those to the ports of one switch
// take turns, at every switch anew, and whoever sends to a port takes the same turn: as routers of
// InfiniBand do (D-mod-k). `places` says where each node of the job stands; `nics` of a node share
// its ports in turn.
NetworkRoutes ways_through(const SwitchNetwork& network, std::span<const std::uint32_t> places,
                           std::uint32_t nics);

}  // namespace stepsim
