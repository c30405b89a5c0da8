// This writes what a DeepSpeed file can say of a scenario.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Stages of ZeRO are said in such a file, beside what says the rest.
bool needs_deepspeed_file(const Scenario& scenario);

std::string deepspeed_text(const Scenario& scenario);

}  // namespace stepsim
