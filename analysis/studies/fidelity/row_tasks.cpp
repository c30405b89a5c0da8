#include "analysis/studies/fidelity/row_tasks.hpp"

#include <algorithm>

#include "sim/base/quantile.hpp"

namespace stepsim {

Range error_interval_of(const PredictedRow& row) {
  std::vector<double> errors{row.step_error};
  for (const DrawnError& each : row.drawn) errors.push_back(each.error);
  std::ranges::sort(errors);
  return {quantile(errors, 0.1), quantile(errors, 0.9)};
}

}  // namespace stepsim
