// How a router spreads tokens over experts.
#pragma once

#include <cstdint>
#include <vector>

namespace stepsim {

// Share of all routed tokens that each expert gets, the smallest first; they add up to 1. `skew` is
// their standard deviation over their mean: the middles of as many equal parts of a log-normal
// distribution, so the spread of a sample but without its chance.
std::vector<double> expert_shares(std::int64_t experts, double skew);

// Tokens of the busiest expert over those of the mean.
double imbalance(std::int64_t experts, double skew);

// Of `groups` equal groups of experts, those in which a token has at least one of its experts, in
// the mean over tokens whose choice is even.
double groups_met(std::int64_t experts, std::int64_t per_token, double groups);

}  // namespace stepsim
