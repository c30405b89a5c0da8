// A run is plain columns: this is the one list of what a run file holds, without a word about its
// format.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/column_file.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Throws std::logic_error when the run contradicts itself.
void write_columns(const Run& run, const ColumnSink& sink);

struct ColumnSource {
  // Replaces the column's values, keeping their type, and its unit.
  std::function<void(Column&)> fill;
  // The names in a group, in the order in which they were written.
  std::function<std::vector<std::string>(const std::string& group)> list;
};
// Throws std::logic_error when the columns make no run.
Run read_columns(const ColumnSource& source);

}  // namespace stepsim
