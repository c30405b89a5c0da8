// What pairs of ranks send each other, each pair once.
#pragma once

#include <algorithm>
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

  // In the order of the pairs; what one pair sends is added up in the order in which it was said.
  std::vector<Leg> legs() && {
    const auto pair = [](const Leg& leg) { return std::tuple(leg.source, leg.target); };
    std::ranges::stable_sort(legs_, {}, pair);
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
  std::vector<Leg> legs_;
};

}  // namespace stepsim
