// This says how a router spreads tokens over experts.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/model/model.hpp"
#include "workloads/strategy/expert_strategy.hpp"

namespace stepsim {

// Share of all routed tokens that each expert gets, the smallest first; they add up to 1. `skew` is
// their standard deviation over their mean: the middles of as many equal parts of a log-normal
// distribution, so the spread of a sample but without its chance.
std::vector<double> expert_shares(std::int64_t experts, double skew);

// Returns the tokens of the busiest expert over those of the mean.
double imbalance(std::int64_t experts, double skew);

// Returns the share of all routed tokens that is kept where an expert takes so many times the mean
// at most; 0: all.
double kept_share(std::int64_t experts, double skew, double most);

// A token's experts are all in so many of the equal groups of experts.
struct ChosenGroups {
  double chosen = 1, of = 1;
};
ChosenGroups chosen_groups(const Experts& experts, const ExpertStrategy& strategy);

// Returns in how many of so many equal parts of the experts a token has at least one of its
// experts, in the mean over tokens whose choice is even.
double parts_met(std::int64_t experts, std::int64_t per_token, double parts,
                 const ChosenGroups& groups = {});

}  // namespace stepsim
