// A run as plain columns: the one list of what a run file holds, without a word about its format.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

using Values =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int16_t>, std::vector<std::uint32_t>,
                 std::vector<std::uint64_t>, std::vector<double>, std::vector<std::string>>;

enum class Place { column, single_value, attribute, list_attribute };

struct Column {
  std::string path;  // "/ops/rank"; of an attribute only the name
  Place place = Place::column;
  Values values;
  std::span<const std::string_view> words = {};  // the members of an enumeration
  std::string unit = {};
};

// Columns go to the sink one after the other, so that a long run is never in memory twice.
using ColumnSink = std::function<void(const Column&)>;
// Throws std::logic_error when the run contradicts itself.
void write_columns(const Run& run, const ColumnSink& sink);

struct ColumnSource {
  // Replaces values, keeping their type, and the unit.
  std::function<void(Column&)> fill;
  // The names in a group, in the order in which they were written.
  std::function<std::vector<std::string>(const std::string& group)> list;
};
// Throws std::logic_error when the columns make no run.
Run read_columns(const ColumnSource& source);

}  // namespace stepsim
