// A scenario as a configuration file of Axolotl; with ZeRO a DeepSpeed file stands beside it.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string axolotl_text(const std::string& data, const Scenario& scenario);

}  // namespace stepsim
