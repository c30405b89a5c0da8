// A scenario as a script that starts Megatron-LM.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string megatron_text(const Catalogue& data, const Scenario& scenario);

}  // namespace stepsim
