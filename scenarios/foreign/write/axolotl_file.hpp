// This writes a scenario as a configuration file of Axolotl.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string axolotl_text(const Catalogue& data, const Scenario& scenario,
                         const std::string& deepspeed);

}  // namespace stepsim
