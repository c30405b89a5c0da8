// A scenario as a person or a program reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stepsim {

bool is_scenario(const std::string& data, const std::string& name);
// Every scenario of the catalogue by name, with its title.
std::vector<std::pair<std::string, std::string>> list_scenarios(const std::string& data);
// The file as it stands, and what it resolves to.
std::string scenario_text(const std::string& data, const std::string& name);
std::string scenario_json(const std::string& data, const std::string& name);

}  // namespace stepsim
