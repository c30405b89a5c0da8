// What `run` says of a training step.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/result_kinds.hpp"

namespace stepsim {

std::string run_text(const Scenario& scenario, const Prediction& prediction,
                     const std::optional<Interval>& interval);
Records run_records(const Prediction& prediction, const std::optional<Interval>& interval);

}  // namespace stepsim
