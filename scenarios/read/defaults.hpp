// Recipes and the stack say what a scenario does not.
#pragma once

#include <string>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

class Catalogue;

// Lays the defaults of the recipes and of the stack that the scenario names under it, those of the
// recipes above. Values know their origin: "recipe NAME", "stack NAME". What cannot be found is
// left to the reading that follows.
void lay_defaults(const Catalogue& data, Document& scenario);

// Notes each value of the scenario that a program which it names as a recipe has not.
void check_offers(const Catalogue& data, const Document& scenario);

// The names behind `recipe:`, one or a list; a name that nothing has is noted.
std::vector<std::string> read_recipe_names(const Catalogue& data, const Table& root);

}  // namespace stepsim
