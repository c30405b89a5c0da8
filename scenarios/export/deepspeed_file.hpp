// What a DeepSpeed file can say of a scenario.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string deepspeed_text(const Scenario& scenario);

}  // namespace stepsim
