// A scenario as a script that starts OpenRLHF.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

std::string openrlhf_text(const Catalogue& data, const Scenario& scenario);

}  // namespace stepsim
