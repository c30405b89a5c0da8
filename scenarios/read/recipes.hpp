// A recipe is what one published source fixes about its runs: keys of a scenario under its
// `defaults:`, and the rows of measured tables that it is of. A scenario asks for it with `recipe:
// NAME`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr Shelf recipe_shelf{"scenarios/recipes", "recipe"};

// These are columns and words: the row's cell in each of them has to hold one of its words.
using CellWords = std::vector<std::pair<std::string, std::vector<std::string>>>;
// Columns and what stands in the row's cell.
using Cells = std::vector<std::pair<std::string, std::string>>;

struct Recipe {
  std::string name, title;
  std::vector<CellWords> of;  // one of them is true of the row; none: no row is of it
  CellWords not_of;           // and this is not
  // Keys and what its program knows of their values: others are refused.
  CellWords offers;
  // Cells that its rows leave empty, and what stands there.
  Cells cells;
  // Cells that its rows print and the program of that release has otherwise: what ran.
  Cells corrects;
};

// Reads a recipe without its defaults, which `lay_defaults` reads.
Recipe read_recipe(const Table& file);

}  // namespace stepsim
