// Quantiles of a list of numbers.
#pragma once

#include <span>

namespace stepsim {

// Returns a quantile of a sorted list, between two entries in proportion; 0 for an empty list.
double quantile(std::span<const double> sorted, double share);

}  // namespace stepsim
