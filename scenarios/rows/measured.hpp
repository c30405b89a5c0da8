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

// Tables say these of a node or a network beside its name.
struct NodeFacts {
  double memory = 0;  // bytes of one GPU
  double ports = 0;
  std::string network, library;  // the usual ones
};
struct NetworkFacts {
  double port = 0, uplink = 0;  // B/s
  std::string library;
};

// Measurement tables name the nodes, networks and processors of the catalogue by these words.
struct MachineWords {
  using Entry = std::pair<std::string, std::vector<std::string>>;  // name, its words
  std::vector<Entry> nodes;
  std::vector<Entry> networks;
  std::vector<Entry> processors{};
  std::vector<NodeFacts> of_node{};        // [node]
  std::vector<NetworkFacts> of_network{};  // [network]
};
MachineWords machine_words(const std::string& data);

// The machine that a row was measured on, if the catalogue has it: the longest word of a node that
// the hardware text contains, and likewise for the network.
std::optional<ClusterChoice> machine_of(const MachineWords& words, const MeasuredCollective& row);

}  // namespace stepsim
