// These schedules say who sends what to whom in a collective, one function for each algorithm.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

// In a direct exchange every rank sends to every other at once.
Schedule direct_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// A hierarchical collective runs one in the nodes, and one between them.
Schedule hierarchical_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// These schedules run rings, one per rail.
Schedule ring_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// These schedules run double binary trees between nodes, and reductions in the switch of a node.
Schedule tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);
Schedule nvls_tree_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

// A double binary tree over m positions has these edges: {child, parent}, two trees. Inner
// positions of one are leaves of the other, so nobody carries more than his share.
struct TreeEdge {
  std::size_t child, parent;
  std::size_t level;  // of the child, the root has 0
};
struct DoubleTree {
  std::array<std::vector<TreeEdge>, 2> trees;
  std::size_t depth = 0;
};
DoubleTree double_tree(std::size_t positions);

// Member at place k of a walk through `count` members that begins at `first` and then swings to
// both sides: first, +1, -1, +2, -2 ... When count is even no two steps are equally long, so the
// walks from all members together use every directed link of a mesh exactly once. A switch does not
// care.
constexpr std::size_t swing(std::size_t first, std::size_t k, std::size_t count) {
  return (first + (k % 2 == 1 ? (k + 1) / 2 : count - k / 2)) % count;
}

// This collects what pairs of ranks send each other, each pair once.
class PairShares {
 public:
  void add(Rank from, Rank to, double share) {
    legs_.push_back({.source = from, .target = to, .share = share});
  }

  // Returns the legs in the order of the pairs; what one pair sends is added up in the order in
  // which it was said.
  std::vector<Leg> legs() && {
    const auto pair = [](const Leg& leg) { return std::tuple(leg.source, leg.target); };
    if (are_dense()) {
      sort_by(&Leg::target);
      sort_by(&Leg::source);
    } else {
      std::ranges::stable_sort(legs_, {}, pair);
    }
    std::vector<Leg> sums;
    sums.reserve(legs_.size());
    for (const Leg& leg : legs_)
      if (!sums.empty() && pair(sums.back()) == pair(leg))
        sums.back().share += leg.share;
      else
        sums.push_back(leg);
    return sums;
  }

 private:
  // Returns whether the ranks lie next to each other, each with a leg or more.
  bool are_dense() const {
    if (legs_.empty()) return false;
    const auto [least, most] = std::ranges::minmax(legs_, {}, &Leg::source);
    return most.source - least.source < legs_.size();
  }

  // Sorts by counting; legs of one rank stay in their order.
  void sort_by(Rank Leg::*rank) {
    const Rank least = std::ranges::min(legs_, {}, rank).*rank;
    const Rank most = std::ranges::max(legs_, {}, rank).*rank;
    std::vector<std::size_t> place(most - least + 2, 0);
    for (const Leg& leg : legs_) ++place[leg.*rank - least + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Leg> sorted(legs_.size());
    for (const Leg& leg : legs_) sorted[place[leg.*rank - least]++] = leg;
    legs_ = std::move(sorted);
  }

  std::vector<Leg> legs_;
};

}  // namespace stepsim
