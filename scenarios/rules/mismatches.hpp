// Parts of a scenario that do not go together, though each of them is sound.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Returns a line for each: a result is still given, and this is how far it may be trusted.
std::vector<std::string> mismatches(const Scenario& scenario);

}  // namespace stepsim
