// What several algorithms share.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

Schedule ring_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule direct_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule hierarchical_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// Member at place k of a walk through `count` members that begins at `first` and then swings to
// both sides: first, +1, -1, +2, -2 ... When count is even no two steps are equally long, so the
// walks from all members together use every directed link of a mesh exactly once. A switch does not
// care.
constexpr std::size_t swing(std::size_t first, std::size_t k, std::size_t count) {
  return (first + (k % 2 == 1 ? (k + 1) / 2 : count - k / 2)) % count;
}

// The edges of a double binary tree over m positions: {child, parent}, two trees. Inner positions
// of one are leaves of the other, so nobody carries more than his share.
struct TreeEdge {
  std::size_t child;
  std::size_t parent;
  std::size_t level;  // of the child, the root has 0
};
struct DoubleTree {
  std::array<std::vector<TreeEdge>, 2> trees;
  std::size_t depth = 0;
};
DoubleTree double_tree(std::size_t positions);

}  // namespace stepsim
