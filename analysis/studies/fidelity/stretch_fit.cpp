#include "analysis/studies/fidelity/stretch_fit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/studies/explain/carriers.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

constexpr double missed = 0.1;  // on either side
constexpr double notch = 0.01;  // as fine as a range is stated
constexpr int most_notches = 200;
constexpr int stretch_rounds = 4;  // each end moves the other a little

NamedConstant constant_of(const Range& stretch) {
  NamedConstant constant;
  constant.name = carries_everything;
  constant.value = 1;
  constant.low = stretch.low;
  constant.high = stretch.high;
  return constant;
}

// Returns whether more rows than one in ten took longer than their interval says, or less long. A
// row to come is as likely as any to be the one that is off: it counts among them (conformal
// prediction).
bool misses_many(std::span<const StretchRow> rows, const Range& stretch, bool longer) {
  double all = 0, outside = 0;
  for (const StretchRow& each : rows) {
    const Range interval = stretched_interval(*each.row, stretch);
    all += each.weight;
    if (longer ? interval.high < 0 : interval.low > 0) outside += each.weight;
  }
  return outside > missed * (all + 1);
}

// The first end, from one outwards, at which few enough are missed.
double first_end(std::span<const StretchRow> rows, Range stretch, double direction,
                 double Range::*place) {
  for (int step = 0; step <= most_notches; ++step) {
    const double end = 1 + direction * notch * step;
    if (end < 2 * notch) break;
    stretch.*place = end;
    if (!misses_many(rows, stretch, direction > 0)) break;
  }
  return stretch.*place;
}

}  // namespace

Range stretched_interval(const PredictedRow& row, const Range& stretch) {
  const NamedConstant constant = constant_of(stretch);
  std::vector<double> errors{row.step_error};
  for (const DrawnError& drawn : row.drawn)
    errors.push_back((1 + drawn.error) * value_at(constant, quantile(drawn.draw, constant.name)) -
                     1);
  std::ranges::sort(errors);
  return {quantile(errors, 0.1), quantile(errors, 0.9)};
}

Range fit_stretch(std::span<const StretchRow> rows) {
  Range stretch{1, 1};
  for (int round = 0; round < stretch_rounds; ++round) {
    stretch.high = first_end(rows, stretch, 1, &Range::high);
    stretch.low = first_end(rows, stretch, -1, &Range::low);
  }
  return stretch;
}

}  // namespace stepsim
