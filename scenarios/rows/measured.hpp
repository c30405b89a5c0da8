// These are published measurement tables: rows of somebody else's benchmark, as data to be held
// against.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

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

}  // namespace stepsim
