// Files that a command writes, beside those that it reads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

// Throws UserError when `output` is one of `inputs`, by whatever path: it would replace what
// somebody wrote. Asked before anything is computed.
void require_no_input(const std::string& output, std::span<const std::string> inputs);

// Returns every file that a scenario was read from: its own, and those beside it.
std::vector<std::string> files_of(const CommandLine& line, const std::string& word,
                                  const Scenario& scenario);

}  // namespace stepsim
