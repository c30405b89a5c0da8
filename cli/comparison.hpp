// `collective --compare` prints predictions beside a table of measured rows.
#pragma once

#include "cli/command.hpp"
#include "cli/options.hpp"

namespace stepsim {

int compare_command(const CommandLine& line, const Options& options);

}  // namespace stepsim
