// This finds by the words in its cells which recipes a row is of.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

bool fulfils(const StepRow& row, const CellWords& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const std::string cell = in_small_letters(cell_of(row, entry.first));
    return std::ranges::any_of(entry.second, [&](const std::string& word) {
      const bool number = word.find_first_not_of("0123456789") == std::string::npos;
      return number ? cell == word : says(cell, word);
    });
  });
}

}  // namespace

void find_recipes(StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  for (const Recipe& recipe : catalog.recipes) {
    const auto is_of = [&](const CellWords& words) { return fulfils(row, words); };
    if (std::ranges::none_of(recipe.of, is_of)) continue;
    if (!recipe.not_of.empty() && is_of(recipe.not_of)) continue;
    made.recipes.push_back(&recipe);
  }
  for (const Recipe* recipe : made.recipes)
    for (const auto& [column, text] : recipe->cells)
      if (fill_in(row, column, text))
        made.assume(fmt::format("as {} have it: {} {}", recipe->title, column, text));
  for (const Recipe* recipe : made.recipes)
    for (const auto& [column, text] : recipe->corrects) {
      const std::string printed = cell_of(row, column);
      if (printed == text) continue;
      put_in(row, column, text);
      made.assume(fmt::format("as {} have it: {} {}{}", recipe->title, column, text,
                              printed.empty() ? "" : ", where the row says " + printed));
    }
}

void write_recipes(RowScenario& made) {
  std::string names;
  for (const Recipe* recipe : made.recipes) names += (names.empty() ? "" : ", ") + recipe->name;
  if (made.recipes.size() == 1) made.set("recipe", names);
  if (made.recipes.size() > 1) made.set("recipe", "[" + names + "]");
}

}  // namespace stepsim
