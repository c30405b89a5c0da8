// Quantiles of a list of numbers.
#pragma once

#include <span>

namespace stepsim {

// Of a sorted list; between two entries in proportion. 0 of none.
double quantile(std::span<const double> sorted, double share);

}  // namespace stepsim
