// A node as a graph of directed links, and the shortest route between any two of its parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/node.hpp"

namespace stepsim {

struct NodeLink {
  std::string name;  // "nvlink.gpu3>nvswitch0"
  BytesPerSecond capacity;
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

NodeGraph lay_out(const Node& node);

}  // namespace stepsim
