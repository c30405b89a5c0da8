// A recipe is what one published source fixes about its runs: keys of a scenario under its
// `defaults:`. A scenario asks for it with `recipe: NAME`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr Shelf recipe_shelf{"scenarios/recipes", "recipe"};

struct Recipe {
  std::string name, title;
  // Keys and what its program knows of their values: others are refused.
  std::vector<std::pair<std::string, std::vector<std::string>>> offers;
};

// Reads a recipe without its defaults, which `lay_defaults` reads.
Recipe read_recipe(const Table& file);

}  // namespace stepsim
