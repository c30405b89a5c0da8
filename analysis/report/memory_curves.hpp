// These curves show what a rank holds over a step, by what it is for.
#pragma once

#include <string>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct MemoryCurves {
  std::vector<double> times;
  std::vector<std::string> classes;         // in order of first use
  std::vector<std::vector<double>> levels;  // [class][time], bytes
  std::vector<double> totals;               // [time]
};

// Returns the curves of what the program allocates, beside what is always there. If there are more
// changes than points, each part of the step is shown at the moment when it holds most, so that no
// peak is lost.
MemoryCurves memory_curves(const Run& run, Rank rank, Pool pool, std::size_t most_points);

}  // namespace stepsim
