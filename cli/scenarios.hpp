// A scenario as a person or a program reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/result_kinds.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

bool is_scenario(const Catalogue& data, const std::string& name);
// Returns every scenario of the catalogue by name, with its title.
std::vector<std::pair<std::string, std::string>> list_scenarios(const Catalogue& data);
// Writes every key with its value and where that comes from, and what follows from them. Keys that
// change nothing in this scenario are counted unless `all` are wanted.
std::string scenario_text(const std::string& name, const std::string& file,
                          const Scenario& scenario, bool all);
Records scenario_records(const std::string& name, const std::string& file,
                         const Scenario& scenario);

// Returns the value, whether somebody said it, and where.
Records value_records(const ResolvedKey& key);

}  // namespace stepsim
