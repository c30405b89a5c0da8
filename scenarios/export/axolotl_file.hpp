// A scenario as a configuration file of Axolotl.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Stages of ZeRO are said in a DeepSpeed file beside it.
bool needs_deepspeed_file(const Scenario& scenario);

std::string axolotl_text(const std::string& data, const Scenario& scenario,
                         const std::string& deepspeed);

}  // namespace stepsim
