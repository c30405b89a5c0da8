// This writes a scenario as a configuration file of TorchTitan.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string torchtitan_text(const Catalogue& data, const Scenario& scenario);

}  // namespace stepsim
