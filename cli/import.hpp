// `import` writes a file of another program as a scenario to go on with.
#pragma once

#include "cli/command.hpp"

namespace stepsim {

int import_command(const CommandLine& line);

}  // namespace stepsim
