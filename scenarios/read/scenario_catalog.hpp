// These find scenario files by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

class Catalogue;

// Returns the name of every scenario file below `data`/scenarios: "seeds/llama32-3b-sft-zero3",
// sorted.
std::vector<std::string> scenario_names(const Catalogue& data);

std::string scenario_file(const Catalogue& data, std::string_view name);

// A path stays what it is; a name, with or without its folder, becomes its file. Throws UserError
// with the nearest name.
std::string find_scenario(const Catalogue& data, const std::string& path_or_name);

}  // namespace stepsim
