// This reads and writes tables with commas between their cells.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// A table is one CSV file: the first line names the columns.
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
// Throws UserError when the file cannot be read or a row has too few or too many cells.
CsvTable read_csv(const std::string& path);

// Lines of cells, the names of the columns above; quotes where needed.
std::string csv_text(const std::vector<std::string>& columns,
                     const std::vector<std::vector<std::string>>& rows);

}  // namespace stepsim
