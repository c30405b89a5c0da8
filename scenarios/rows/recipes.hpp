// What a framework's published recipes set, or a page says once of all of its runs, where a row of
// a table leaves it open.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/rows/step_row.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

struct Recipe {
  std::string title;
  // Columns and words: the row's cell has to hold one of them.
  std::vector<std::pair<std::string, std::vector<std::string>>> of;
  std::vector<std::pair<std::string, std::string>> cells;  // column and what it then holds
  std::string notes;                                       // more of them
  std::vector<std::string> settings;  // lines of a scenario's strategy that no column says
  std::string source;
};

std::vector<Recipe> read_recipes(const Table& file);

// The row with its open cells filled in by all recipes that it is one of, in their order. What was
// taken over is said in `assumed`.
StepRow with_recipes(const StepRow& row, const std::vector<Recipe>& recipes,
                     std::vector<std::string>& assumed);

}  // namespace stepsim
