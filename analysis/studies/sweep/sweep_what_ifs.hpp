// Changes that somebody could make to a point of a sweep, tried one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_report.hpp"

namespace stepsim {

// A change of one point, computed as all points are.
struct WhatIf {
  std::string change;  // "strategy.zero: 2"
  double gain = 0;     // of tokens per second: 0.25 is a quarter more
  Outcome outcome;
};

// The three that gain most, of every change known here that can be made to this point.
std::vector<WhatIf> what_ifs(const std::string& data, const SweepPlan& plan, const SweepRow& row);
// Of the fastest point of a table that was read from a file: it names its scenario. Nothing: that
// is not at hand any more, or is another one now.
std::optional<std::vector<WhatIf>> what_ifs_of(const std::string& data, const SweepTable& table,
                                               const SweepReport& report);

}  // namespace stepsim
