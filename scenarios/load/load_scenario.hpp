// Opens and reads whatever a command takes for a scenario.
#pragma once

#include <span>
#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Takes a scenario file, a trace (*.h5), a file of another program, or a name that the catalogue
// has. Throws UserError with every problem of the file.
Scenario load_scenario(const Catalogue& data, const std::string& path_or_name,
                       std::span<const Setting> settings = {}, const MaybeDraw& draw = {});

}  // namespace stepsim
