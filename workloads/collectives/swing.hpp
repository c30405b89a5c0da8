// These are walks through the members of a node.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

// Member at place k of a walk through `count` members that begins at `first` and then swings to
// both sides: first, +1, -1, +2, -2 ... When count is even no two steps are equally long, so the
// walks from all members together use every directed link of a mesh exactly once. A switch does not
// care.
constexpr std::size_t swing(std::size_t first, std::size_t k, std::size_t count) {
  return (first + (k % 2 == 1 ? (k + 1) / 2 : count - k / 2)) % count;
}

}  // namespace stepsim
