// These schedules run double binary trees between nodes, and reductions in the switch of a node.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

Schedule tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// A double binary tree over m positions has these edges: {child, parent}, two trees. Inner
// positions of one are leaves of the other, so nobody carries more than his share.
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
