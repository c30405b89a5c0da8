// Changes that somebody could make to a point of a sweep, tried one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/sweep/sweep_report.hpp"

namespace stepsim {

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
