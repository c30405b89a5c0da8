// These read cells of a measured table: texts as they stand, numbers where the source says one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/rows/measured.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {

using Cell = std::optional<double>;  // nothing: the source does not say

// Reads a number above or at zero. What is none is noted: "gpus: expected a number, found "many"".
Cell number_in(std::string_view cell, std::string_view column,
               std::vector<std::string>& unreadable);

std::string_view trimmed(std::string_view text);

// Returns the row's name, or its line.
std::string id_of(const CsvTable& table, const CsvTable::Row& row);

// Returns the columns that `texts` and `numbers` read.
template <class Texts, class Numbers>
std::vector<std::string> columns_of(const Texts& texts, const Numbers& numbers) {
  std::vector<std::string> names;
  names.reserve(std::size(texts) + std::size(numbers));
  for (const auto& [column, member] : texts) names.emplace_back(column);
  for (const auto& [column, member] : numbers) names.emplace_back(column);
  return names;
}

// Reads the columns that `texts` and `numbers` pair with members of Row; both may lack some. Throws
// UserError when the table does not name its rows.
template <class Row, class Texts, class Numbers>
std::vector<Row> rows_from(const CsvTable& table, const Texts& texts, const Numbers& numbers) {
  require_columns(table, {"id"});
  return mapped(table.rows, [&](const CsvTable::Row& line) {
    Row row;
    row.line = line.line;
    row.id = id_of(table, line);
    for (const auto& [column, member] : texts)
      row.*member = std::string(trimmed(table.cell(line, column)));
    for (const auto& [column, member] : numbers)
      row.*member = number_in(trimmed(table.cell(line, column)), column, row.unreadable);
    return row;
  });
}

}  // namespace stepsim
