#include "analysis/report/curve.hpp"

#include <algorithm>

namespace stepsim {
namespace {

// Calls with begin, end and value of every stretch.
template <class Visit>
void for_stretches(const Curve& curve, double end, const Visit& visit) {
  for (std::size_t i = 0; i < curve.times.size(); ++i) {
    const double until = i + 1 < curve.times.size() ? curve.times[i + 1] : end;
    if (until > curve.times[i]) visit(curve.times[i], until, curve.values[i]);
  }
}

}  // namespace

double area(const Curve& curve, double end) {
  double sum = 0;
  for_stretches(curve, end,
                [&](double from, double to, double value) { sum += (to - from) * value; });
  return sum;
}

Curve averaged(const Curve& curve, double end, std::size_t bins) {
  if (curve.times.size() <= bins || end <= 0) return curve;
  const double width = end / static_cast<double>(bins);
  Curve result;
  result.values.assign(bins, 0);
  for (std::size_t bin = 0; bin < bins; ++bin)
    result.times.push_back(static_cast<double>(bin) * width);
  for_stretches(curve, end, [&](double from, double to, double value) {
    if (value == 0) return;
    for (auto bin = std::min(static_cast<std::size_t>(from / width), bins - 1); bin < bins; ++bin) {
      const double left = std::max(from, result.times[bin]);
      const double right = std::min(to, bin + 1 < bins ? result.times[bin + 1] : end);
      if (right > left) result.values[bin] += value * (right - left) / width;
      if (right >= to) break;
    }
  });
  return result;
}

}  // namespace stepsim
