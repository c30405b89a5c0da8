// A report is what a sweep says as a whole: how far more machines help, which points are worth
// having, and what would help the best of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_table.hpp"

namespace stepsim {

struct ScalingPoint {
  std::size_t row = 0;  // of the table
  double gpus = 0;
  double efficiency = 1;  // throughput per GPU over that of the smallest feasible machine
  double marginal = 1;    // what the last growth of the machine brought, over what it would at best
};

// Points that differ in the number of nodes, and in what moves with it, only.
struct Scaling {
  std::string name;                  // the other settings: "strategy.zero 3, job.micro_batch 2"
  std::vector<ScalingPoint> points;  // feasible ones, by machine size
  bool fixed_batch = false;          // the work of a step stays the same: strong scaling
  std::optional<std::size_t> knee;   // of `points`: no larger one brings half of what it could
};

struct SweepReport {
  std::size_t feasible = 0;
  std::optional<std::size_t> fastest;   // row with the most tokens a second
  std::optional<std::size_t> cheapest;  // row with the least money, or GPU time, per token
  std::optional<std::size_t> smallest;  // feasible row with the fewest GPUs
  bool alike = false;                   // all that can run have the same figures: none is best
  std::vector<std::size_t> front;       // rows that no other beats in both, fastest first
  std::vector<Scaling> scalings;
};

SweepReport report_of(const SweepTable& table);

}  // namespace stepsim
