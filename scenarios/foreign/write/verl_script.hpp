// A GRPO scenario as a script that starts verl.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string verl_text(const Catalogue& data, const Scenario& scenario);

}  // namespace stepsim
