// This says in the field's words what a scenario was taken for: what trains, on which rows, how.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/read/resolved.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

// Stands behind a value that nobody said: a default, or an assumption.
inline constexpr std::string_view nobodys_mark = "*";

struct Taken {
  std::string_view key;      // "optimizer"
  std::string_view meaning;  // "the update, and what it keeps"
  std::string text;          // "AdamW*"
};

// Returns the parts in the order in which people say them; each is one phrase.
std::vector<Taken> taken_of(const Scenario& scenario);
// Writes the parts one behind the other, and what the mark means where it stands.
std::string taken_line(const std::vector<Taken>& parts);

// Returns the keys behind the parts that no file and no option says: "strategy.zero".
std::vector<std::string> unsaid_keys(const Scenario& scenario);

// Returns whether neither a file nor an option says the key: it is a default, or was assumed.
bool is_nobodys(const ResolvedKey& key);

}  // namespace stepsim
