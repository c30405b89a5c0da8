// Runs by the word that a person has for them: a saved trace, or a scenario.
#pragma once

#include <span>
#include <string>

#include "cli/command.hpp"
#include "scenarios/scenario.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Reads a trace, or replays a scenario in a worker. Settings are for scenarios.
Run load_run(const CommandLine& line, const std::string& word, std::span<const Setting> settings);

}  // namespace stepsim
