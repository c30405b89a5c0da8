// These sentences say what the table of a sweep says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/sweep/sweep_report.hpp"

namespace stepsim {

// Writes "micro_batch 4, zero 3": of keys that all rows say alike nothing is said, unless all are.
std::string settings_text(const SweepTable& table, const SweepRow& row);

std::string rate_text(double tokens_per_second);

// Fastest, cheapest, smallest, and how many are on the front; none when no point can run.
std::vector<std::string> points_worth_having(const SweepTable& table, const SweepReport& report);
// Returns how far more nodes help, one line for each series of them.
std::vector<std::string> scaling_lines(const SweepReport& report);

// A change of one point, computed as all points are.
struct WhatIf {
  std::string change;  // "strategy.zero: 2"
  double gain = 0;     // of tokens per second: 0.25 is a quarter more
  Outcome outcome;
};

// If no point can run, this is the one that lacks least memory, and what makes it run.
struct NearestRun {
  std::size_t row = 0;
  FittingSteps fitting;
};

struct SweepAdvice {
  std::vector<WhatIf> faster;         // of the fastest point: the three changes that gain most
  std::optional<NearestRun> nearest;  // where no point can run
};

SweepAdvice advice_on(const Catalogue& data, const SweepPlan& plan, const SweepTable& table,
                      const SweepReport& report);
// Returns advice on a table that was read from a file, which names its scenario; nothing where that
// is not at hand any more, or is another one now.
std::optional<SweepAdvice> advice_on(const Catalogue& data, const SweepTable& table,
                                     const SweepReport& report);

}  // namespace stepsim
