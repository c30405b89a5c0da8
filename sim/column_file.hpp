// A column file holds named columns of numbers and texts as the bytes of an HDF5 file: equal
// columns, equal bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stepsim {

using Values =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int16_t>, std::vector<std::int32_t>,
                 std::vector<std::uint32_t>, std::vector<std::uint64_t>, std::vector<double>,
                 std::vector<std::string>>;

enum class ColumnKind { column, single_value, attribute, list_attribute };

struct Column {
  std::string path;  // "/ops/rank"; of an attribute only the name
  ColumnKind place = ColumnKind::column;
  Values values;
  std::span<const std::string_view> words = {};  // the members of an enumeration
  std::string unit = {};
};

// Columns go to the sink one after the other, so that a long run is never in memory twice.
using ColumnSink = std::function<void(const Column&)>;

// Returns the whole file: the groups are made first, then `columns` hands every column to the sink.
std::string image_of_columns(std::span<const std::string_view> groups,
                             const std::function<void(const ColumnSink&)>& columns);

// Reads such bytes. Throws std::runtime_error, which names the column, when they are damaged or
// hold something else.
class ColumnReader {
 public:
  explicit ColumnReader(std::string image);
  ~ColumnReader();
  // Replaces the column's values, keeping their type, and its unit.
  void fill(Column& column) const;
  // The names in a group, in the order in which they were written.
  std::vector<std::string> list(const std::string& group) const;

 private:
  struct Open;
  std::unique_ptr<const Open> open_;
};

// An HDF5 file begins with this signature; is_column_file() looks for it.
inline constexpr std::string_view column_file_signature = "\x89HDF\r\n\x1a\n";
bool is_column_file(std::string_view bytes);

}  // namespace stepsim
