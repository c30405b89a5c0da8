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
  std::string machine{};  // of the catalogue; empty: hardware and interconnect tell it
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

// A node's GPU, which tables name beside it.
struct NodeGpu {
  std::string name;
  double memory = 0;  // bytes
};

// Measurement tables name the nodes and networks of the catalogue by these words.
struct MachineWords {
  using Entry = std::pair<std::string, std::vector<std::string>>;  // name, its words
  std::vector<Entry> nodes;
  std::vector<Entry> networks;
  std::vector<NodeGpu> gpus{};  // [node]
  Catalogue data{};             // that has them
};
MachineWords machine_words(const Catalogue& data);
// Returns the name whose words hold the longest that the text contains; "" when none does.
std::string best_name(const std::vector<MachineWords::Entry>& entries, std::string_view text);

// The machine that a row was measured on, if the catalogue has it: the longest word of a node that
// the hardware text contains, and likewise for the network.
std::optional<ClusterChoice> machine_of(const MachineWords& words, const MeasuredCollective& row);

}  // namespace stepsim
