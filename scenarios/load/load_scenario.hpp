// Opens and reads whatever a command takes for a scenario.
#pragma once

#include <span>
#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Takes a scenario file, a trace (*.h5), a file of another program, or a name that the catalogue
// has. Constants are as an anchor has them, where the settings name one or the catalogue has one of
// this machine and stack. Throws UserError with every problem of the file.
Scenario load_scenario(const Catalogue& data, const std::string& path_or_name,
                       std::span<const Setting> settings = {}, const MaybeDraw& draw = {});

}  // namespace stepsim
