// Programs of several jobs that run side by side on one machine, each again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

struct RunAgain {
  const Platform& platform;
  const OpGraph& graph;
  std::uint32_t times = 1;  // one after the other
};

struct SideBySide {
  Platform platform;
  OpGraph graph;
  std::vector<std::vector<OpId>> ends;    // [program][time]: an instant
  std::vector<std::vector<LinkId>> used;  // [program]: links that its flows cross, in order
};

// Links that `is_shared` holds for are one where their names are equal; all else a program has for
// itself, and its names begin with "1." or "2.".
SideBySide side_by_side(std::span<const RunAgain> programs,
                        const std::function<bool(const Link&)>& is_shared);

}  // namespace stepsim
