// A node is a graph of directed links. This finds the shortest route between any two of its parts,
// and how far it is from switch to switch in a network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/node.hpp"
#include "topology/switches.hpp"

namespace stepsim {

class Catalogue;

struct NodeLink {
  std::string name;  // "nvlink.gpu3>nvswitch0"
  BytesPerSecond capacity;

  friend bool operator==(const NodeLink&, const NodeLink&) = default;
};

// Links are numbered within the node; a route is a list of those numbers.
struct NodeGraph {
  std::vector<NodeLink> links;
  std::vector<std::uint32_t> first_part;                        // per kind: number of its part 0
  std::vector<std::vector<std::vector<std::uint32_t>>> routes;  // [part][part]; empty: none
  std::vector<std::uint32_t> engine_out, engine_in;  // per GPU: what drives its collectives

  std::uint32_t part(PartKind kind, std::uint32_t index) const {
    return first_part[static_cast<std::size_t>(kind)] + index;
  }
  const std::vector<std::uint32_t>& route(std::uint32_t from, std::uint32_t to) const {
    return routes[from][to];
  }
};

NodeGraph lay_out(const Catalogue& data, const Node& node);

// Returns [goal][switch] the fewest cables from the switch to that goal, or SwitchNetwork::nowhere.
std::vector<std::vector<std::uint32_t>> distances_to(std::span<const SwitchNetwork::Line> lines,
                                                     std::size_t switches,
                                                     std::span<const std::uint32_t> goals);

}  // namespace stepsim
