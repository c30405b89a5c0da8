// What `run` and `memory` print of a GRPO scenario.
#pragma once

#include <string>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/outcome/interval.hpp"

namespace stepsim {

std::string grpo_text(const Scenario& scenario, const GrpoPrediction& prediction,
                      const std::optional<Interval>& interval = {});
std::string grpo_json(const Scenario& scenario, const GrpoPrediction& prediction,
                      const std::optional<Interval>& interval = {});

std::string grpo_memory_text(const Scenario& scenario, const GrpoMemory& memory);
std::string grpo_memory_json(const GrpoMemory& memory);

}  // namespace stepsim
