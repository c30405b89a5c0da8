// This says how full each link was over a step.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

// values[i] holds from times[i] until times[i + 1], the last one until the end of the step.
struct Curve {
  std::vector<double> times;
  std::vector<double> values;
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

}  // namespace stepsim
