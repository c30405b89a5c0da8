// These read cells of a measured table: texts as they stand, numbers where the source says one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/rows/measured.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {

using Cell = std::optional<double>;  // nothing: the source does not say
template <class Row>
using NumberColumn = std::pair<std::string_view, Cell Row::*>;

// Reads a number above or at zero. What is none is noted: "gpus: expected a number, found "many"".
Cell number_in(std::string_view cell, std::string_view column,
               std::vector<std::string>& unreadable);

std::string_view trimmed(std::string_view text);

// Returns the row's name, or its line.
std::string id_of(const CsvTable& table, const CsvTable::Row& row);

// Returns what a cell lists between " | ".
std::vector<std::string> listed_in(std::string_view cell);

// Reads what every table says of a row: its name and family, what it takes for granted, what keeps
// it from being predicted, and its figures. The family is the table's name where none is said.
template <class Row, class Numbers>
Row row_of(const CsvTable& table, const CsvTable::Row& line, const Numbers& numbers) {
  Row row;
  row.line = line.line;
  row.id = id_of(table, line);
  row.family = std::string(trimmed(table.cell(line, "family")));
  row.assumed = listed_in(table.cell(line, "taken"));
  row.missing = listed_in(table.cell(line, "not_expressed"));
  for (const auto& [column, member] : numbers)
    row.*member = number_in(trimmed(table.cell(line, column)), column, row.missing);
  return row;
}

// Returns the text as YAML has it between quotes.
std::string quoted_text(std::string_view text);

}  // namespace stepsim
