// Recipes and the stack say what a scenario does not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"

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

// A recipe is what one published source fixes about its runs: keys of a scenario under its
// `defaults:`. A scenario asks for it with `recipe: NAME`.
inline constexpr Shelf recipe_shelf{"scenarios/recipes", "recipe"};

struct Recipe {
  std::string name, title;
  // Keys and what its program knows of their values: others are refused.
  std::vector<std::pair<std::string, std::vector<std::string>>> offers;
};

// Reads a recipe without its defaults, which `lay_defaults` reads.
Recipe read_recipe(const Table& file);

}  // namespace stepsim
