#include "scenarios/rows/recipes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stepsim {
namespace {

bool is_of(const StepRow& row, const Recipe& recipe) {
  return std::all_of(recipe.of.begin(), recipe.of.end(), [&](const auto& wanted) {
    const std::string cell = lower_case(cell_of(row, wanted.first));
    const auto& words = wanted.second;
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      const bool number = word.find_first_not_of("0123456789") == std::string::npos;
      return number ? cell == word : contains(cell, word);
    });
  });
}

// A cell is open where it is empty, or where it holds a word that the recipe says more of:
// "selective", and which modules that are.
bool is_open(const std::string& cell, const std::string& filled) {
  return cell.empty() || filled.starts_with(lower_case(cell) + ":");
}

}  // namespace

std::vector<Recipe> read_recipes(const Table& file) {
  std::vector<Recipe> recipes;
  const std::string title = file.text("title");
  for (const Table& entry : file.tables("recipes")) {
    Recipe recipe{title,
                  {},
                  {},
                  entry.text_or("notes", ""),
                  entry.texts_or("settings"),
                  entry.text("source")};
    const Table of = entry.table("of");
    for (const std::string& column : of.keys()) recipe.of.emplace_back(column, of.values(column));
    for (const std::string& key : entry.keys())
      if (key != "of" && key != "notes" && key != "settings" && key != "source")
        recipe.cells.emplace_back(key, entry.text(key));
    for (const auto& [column, words] : recipe.of)
      if (!is_column(column)) of.problem(column, "is no column of a table of steps");
    for (const auto& [column, cell] : recipe.cells)
      if (!is_column(column)) entry.problem(column, "is no column of a table of steps");
    recipes.push_back(std::move(recipe));
  }
  return recipes;
}

StepRow with_recipes(const StepRow& given, const std::vector<Recipe>& recipes,
                     std::vector<std::string>& assumed) {
  StepRow row = given;
  for (const Recipe& recipe : recipes) {
    if (!is_of(given, recipe)) continue;
    std::vector<std::string> taken;
    for (const auto& [column, cell] : recipe.cells) {
      if (!is_open(cell_of(row, column), cell)) continue;
      fill_cell(row, column, cell);
      taken.push_back(fmt::format("{} {}", column, cell));
    }
    if (!recipe.notes.empty()) {
      row.notes += (row.notes.empty() ? "" : "; ") + recipe.notes;
      taken.push_back(recipe.notes);
    }
    for (const std::string& line : recipe.settings) {
      row.settings.push_back(line);
      taken.push_back(line);
    }
    if (!taken.empty())
      assumed.push_back(fmt::format("as {} have it: {}", recipe.title, fmt::join(taken, "; ")));
  }
  return row;
}

}  // namespace stepsim
