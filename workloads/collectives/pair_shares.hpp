// This collects what pairs of ranks send each other, each pair once.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

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
