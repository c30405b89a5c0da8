// This draws scenarios that nobody thought of: any model, node, stack and keys. What a key may say
// is drawn from the tables of keys, so that a new key is drawn by standing there.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tests/support/dice.hpp"

namespace stepsim {

// Draws keys with their values, in the order of a file; the first of them have to stand.
std::vector<Setting> draw_settings(const Catalogue& data, Dice& dice);
// Returns all keys that may be among them.
std::vector<std::string> keys_that_are_drawn();
// Returns whether there is no scenario without the key, or none that is small.
bool has_to_stand(std::string_view key);

// Takes away some of what the refusal is about. Returns false where nothing is left that could go.
bool mend(std::vector<Setting>& settings, const std::vector<Problem>& problems, Dice& dice);

// Writes the settings as a scenario file.
std::string yaml_of(std::span<const Setting> settings);

}  // namespace stepsim
