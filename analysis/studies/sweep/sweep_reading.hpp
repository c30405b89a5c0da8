// These sentences say what the table of a sweep says.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_report.hpp"

namespace stepsim {

// Writes "micro_batch 4, zero 3": of keys that all rows say alike nothing is said, unless all are.
std::string settings_text(const SweepTable& table, const SweepRow& row);

std::string rate_text(double tokens_per_second);

// Fastest, cheapest, smallest, and how many are on the front; none when no point can run.
std::vector<std::string> points_worth_having(const SweepTable& table, const SweepReport& report);
// Returns how far more nodes help, one line for each series of them.
std::vector<std::string> scaling_lines(const SweepReport& report);

}  // namespace stepsim
