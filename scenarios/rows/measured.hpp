// These are published measurement tables: rows of somebody else's benchmark, as data to be held
// against.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Throws UserError that names every column that the table lacks.
void require_columns(const CsvTable& table, const std::vector<std::string>& names);

// Reads numeric cells and reports all malformed ones in one exception.
struct NumberReader {
  const CsvTable& table;
  std::vector<Problem> problems;

  double operator()(const CsvTable::Row& row, std::string_view column);    // 0: the cell is empty
  std::uint32_t count(const CsvTable::Row& row, std::string_view column);  // 1: likewise
};

struct MeasuredCollective {
  std::string id;
  int line = 0;
  std::string source;      // whose table: the first word of its column
  std::string collective;  // as the table calls it: all_reduce, send_recv, h2d_memcpy, ...
  std::string hardware;
  std::string interconnect;
  std::string algorithm;
  std::string machine{};  // of the catalogue; empty: the hardware names a card of it
  std::string network{};  // of the catalogue, between nodes
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 1;
  double bytes = 0;  // 0: the source gives a rate only
  double time = 0;   // s; 0: see rate
  double rate = 0;   // B/s as the table's bus bandwidth; 0: see time
};
// Throws UserError naming the line and column of every cell that is no number.
std::vector<MeasuredCollective> measured_collectives(const CsvTable& table);

// A note is what somebody found out about a single row: id, left_out (yes or no) and note.
struct RowNote {
  std::string id;
  bool left_out = false;  // the row is no test of the model
  std::string note;
};
// Throws UserError when a column is missing, a note is empty or twice there, or no row has its id.
std::vector<RowNote> row_notes(const CsvTable& table, std::span<const MeasuredCollective> rows);

// Returns the machine that a row was measured on, if the catalogue has it: the one that the row
// names, else the usual node of the card that its hardware is called by.
std::optional<ClusterChoice> machine_of(const Catalogue& data, const MeasuredCollective& row);

// These read cells of a measured table: texts as they stand, numbers where the source says one.
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
