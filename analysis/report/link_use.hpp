// This says how full each link was over a step.
#pragma once

#include <vector>

#include "analysis/report/curve.hpp"
#include "sim/trace.hpp"

namespace stepsim {

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
