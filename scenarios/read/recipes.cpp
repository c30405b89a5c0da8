#include "scenarios/read/recipes.hpp"

namespace stepsim {
namespace {

CellWords read_words(const Table& table) {
  CellWords words;
  for (const std::string& column : table.keys()) words.emplace_back(column, table.values(column));
  return words;
}

Cells read_cells(const Table& table) {
  Cells cells;
  for (const std::string& column : table.keys()) cells.emplace_back(column, table.text(column));
  return cells;
}

}  // namespace

Recipe read_recipe(const Table& file) {
  Recipe recipe{file.text("name"), file.text("title"), {}, {}, {}, {}, {}};
  file.text_or("note", "");
  if (file.has("of"))
    for (const Table& rows : file.tables("of")) recipe.of.push_back(read_words(rows));
  if (const auto others = file.table_if("not_of")) recipe.not_of = read_words(*others);
  if (const auto offers = file.table_if("offers")) recipe.offers = read_words(*offers);
  if (const auto cells = file.table_if("cells")) recipe.cells = read_cells(*cells);
  if (const auto corrects = file.table_if("corrects")) {
    recipe.corrects = read_cells(corrects->table("cells"));
    corrects->text("source");
  }
  return recipe;
}

}  // namespace stepsim
