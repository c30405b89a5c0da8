// Published measurement tables: rows of somebody else's benchmark, as data to be held against.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalog.hpp"

namespace stepsim {

// One CSV file: the first line names the columns.
struct CsvTable {
  std::string file;
  std::vector<std::string> columns;
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;

  std::optional<std::size_t> column(std::string_view name) const;
  // Empty when the column is missing or the cell is.
  std::string_view cell(const Row& row, std::string_view name) const;
};
CsvTable parse_csv(std::string_view text, std::string_view file);
CsvTable read_csv(const std::string& path);

struct MeasuredCollective {
  std::string id;
  int line = 0;
  std::string collective;  // as the table calls it: all_reduce, send_recv, h2d_memcpy, ...
  std::string hardware;
  std::string interconnect;
  std::string algorithm;
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 1;
  double bytes = 0;  // 0: the source gives a rate only
  double time = 0;   // s; 0: see rate
  double rate = 0;   // B/s as the table's bus bandwidth; 0: see time
};
// Throws UserError naming the line and column of every cell that is no number.
std::vector<MeasuredCollective> measured_collectives(const CsvTable& table);

// The machine that a row was measured on, if the catalogue has it: the longest word of a node's
// `measured_as` list that the hardware text contains, and likewise for the network.
std::optional<ClusterChoice> machine_of(const std::string& data, const MeasuredCollective& row);

}  // namespace stepsim
