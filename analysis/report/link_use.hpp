// This says how full each link was over a step.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

// values[i] holds from times[i] until times[i + 1], the last one until the end of the step.
struct Curve {
  std::vector<double> times, values;
};

// Returns a curve of the same area in at most `bins` equal parts of the time until `end`; the same
// curve where it has no more points than that.
Curve averaged(const Curve& curve, double end, std::size_t bins);

// Returns the area under the curve until `end`.
double area(const Curve& curve, double end);

struct LinkCurve {
  LinkId link{};
  Curve share;      // of the capacity, headers included; 1: full
  double mean = 0;  // of it over the step
};

// Returns the curves of the busiest links first, without those that carried nothing. What an
// operation sends counts evenly over its time, so a short rush within a long operation does not
// show.
std::vector<LinkCurve> link_use(const Run& run, std::size_t most_links);

// These curves show what a rank holds over a step, by what it is for.
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
