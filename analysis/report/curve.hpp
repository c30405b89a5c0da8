// A value that changes in steps, and how to say it with fewer points.
#pragma once

#include <cstddef>
#include <vector>

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

}  // namespace stepsim
