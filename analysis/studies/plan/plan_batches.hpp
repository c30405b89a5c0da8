// A batch that shares few divisors with the GPUs leaves few ways to split a job; one beside it may
// be the better question.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/studies/plan/plan_search.hpp"

namespace stepsim {

struct OtherBatch {
  std::int64_t rows = 0;
  std::string plan;  // the best one, in words
  Outcome outcome;   // of it
  double gain = 0;   // by the goal, for each row: 0.27 is 27 % more
};

// Batches at most so far from the one of the job, as a share of it.
inline constexpr double batch_nearby = 0.05;

// Returns batches nearby that share more divisors with the GPUs, best first: those that most share,
// the nearest one on either side. `only_whole`: of these such that every GPU has equally many rows.
std::vector<std::int64_t> batches_beside(std::int64_t rows, std::int64_t gpus, bool only_whole);

// Returns those of them that gain, the one that gains most first, as far as there is time.
std::vector<OtherBatch> better_batches(const PlanQuestion& question, const PlanSpace& space,
                                       const PlanSearch& search, const PlanAnswer& answer,
                                       bool only_whole);

}  // namespace stepsim
