// What `run` says of a training step.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/result.hpp"

namespace stepsim {

inline constexpr ResultKind run_kind{"run", 1, "`stepsim run`: one training step"};

std::string run_text(const Scenario& scenario, const Prediction& prediction,
                     const std::optional<Interval>& interval);
Records run_records(const Prediction& prediction, const std::optional<Interval>& interval);
// With everything in it that there may be: what a schema is made of.
Records run_sample();

}  // namespace stepsim
