// A scenario as a person or a program reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/keys/resolved.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/json.hpp"

namespace stepsim {

bool is_scenario(const std::string& data, const std::string& name);
// Every scenario of the catalogue by name, with its title.
std::vector<std::pair<std::string, std::string>> list_scenarios(const std::string& data);
// Every key with its value and where that comes from, and what follows from them. Keys that change
// nothing in this scenario are counted unless `all` are wanted.
std::string scenario_text(const std::string& name, const std::string& file,
                          const Scenario& scenario, bool all);
std::string scenario_json(const std::string& name, const std::string& file,
                          const Scenario& scenario);

// "value": null, true, 5 or "text"; "said"; "source" and "line" of what somebody said.
void put_value(JsonWriter& json, const ResolvedKey& key);

}  // namespace stepsim
