// This says how long responses are: drawn by group and sample, so that every layout sees the same
// ones.
#pragma once

#include <cstdint>

#include "workloads/grpo/grpo.hpp"

namespace stepsim {

// This is taken where nobody says how long responses are, as shares of their limit: lognormal, and
// half as long to nearly all of them cut.
struct GuessedLengths {
  double mean = 1.0 / 3, low = 1.0 / 6, high = 0.95;
};
inline constexpr GuessedLengths guessed_lengths;

// Returns the tokens of one response, between 1 and the job's limit.
std::int64_t response_tokens(const Grpo& grpo, std::uint64_t group, std::uint64_t sample);

// Returns whether all rewards of a group are equal, so that nothing can be learnt from it.
bool without_signal(const Grpo& grpo, std::uint64_t group);

// Returns the mean over the distribution, cut at the limit.
double mean_response(const Grpo& grpo);

// Lognormal lengths that have this mean behind the cut.
ResponseLengths lengths_with_mean(double mean, double sigma, std::int64_t limit,
                                  std::uint64_t seed);

}  // namespace stepsim
