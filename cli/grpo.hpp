// What `run` and `memory` print of a GRPO scenario.
#pragma once

#include <string>

#include "analysis/studies/grpo_prediction.hpp"

namespace stepsim {

std::string grpo_text(const Scenario& scenario, const GrpoPrediction& prediction);
std::string grpo_json(const Scenario& scenario, const GrpoPrediction& prediction);

std::string grpo_memory_text(const Scenario& scenario, const GrpoMemory& memory);
std::string grpo_memory_json(const GrpoMemory& memory);

}  // namespace stepsim
