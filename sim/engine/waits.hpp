// Waits says which operations wait for which others, as a replay needs it: it is found once,
// however often the program is played.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/op_graph.hpp"

namespace stepsim {

struct Waits {
  explicit Waits(const OpGraph& graph) : successors(graph) {
    counts.reserve(graph.size());
    const auto offsets = graph.offsets();
    for (std::size_t i = 0; i < graph.size(); ++i)
      counts.push_back(static_cast<std::uint32_t>(offsets[i + 1] - offsets[i]));
  }

  Successors successors;
  std::vector<std::uint32_t> counts;  // [operation]: how many others it waits for
};

}  // namespace stepsim
