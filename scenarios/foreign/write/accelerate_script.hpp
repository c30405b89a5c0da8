// A scenario as a script that starts TRL under Accelerate, with the files that it names.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Writes how ranks share the training, as Accelerate's launcher reads it. `deepspeed` is the file
// that it names.
std::string accelerate_text(const Scenario& scenario, const std::string& deepspeed);

std::string trl_text(const Catalogue& data, const Scenario& scenario,
                     const std::string& accelerate);

}  // namespace stepsim
