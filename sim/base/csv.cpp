#include "sim/base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::string_view mark_of_utf8 = "\xEF\xBB\xBF";  // of spreadsheets

bool stands_bare(std::string_view cell) {
  return cell.find_first_of(",\"\n") == std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto place = std::ranges::find(columns, name);
  if (place == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(place - columns.begin());
}

std::string_view CsvTable::cell(const Row& row, std::string_view name) const {
  const auto at = column(name);
  return at && *at < row.cells.size() ? std::string_view(row.cells[*at]) : std::string_view{};
}

// Quoted cells may hold commas, line ends and doubled quotes.
CsvTable parse_csv(std::string_view text, std::string_view file) {
  CsvTable table{std::string(file), {}, {}};
  if (text.starts_with(mark_of_utf8)) text.remove_prefix(mark_of_utf8.size());
  CsvTable::Row row{.line = 1, .cells = {""}};
  int line = 1;
  bool quoted = false;
  const auto end_row = [&] {
    const bool blank = row.cells.size() == 1 && row.cells.front().empty();
    if (!blank && table.columns.empty())
      table.columns = row.cells;
    else if (!blank)
      table.rows.push_back(row);
    row = {.line = line + 1, .cells = {""}};
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '"')
        row.cells.back() += text[++i];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      row.cells.emplace_back();
    } else if (c == '\n' && !quoted) {
      end_row();
    } else if (c != '\r' || quoted) {
      row.cells.back() += c;
    }
    if (c == '\n') ++line;
  }
  if (quoted) throw UserError({{table.file, row.line, "", "a quoted cell is never closed"}});
  end_row();
  for (const CsvTable::Row& each : table.rows)
    if (each.cells.size() != table.columns.size())
      throw UserError(
          {{table.file, each.line, "",
            fmt::format("expected {} cells, found {}", table.columns.size(), each.cells.size())}});
  return table;
}

CsvTable read_csv(const std::string& path) {
  return parse_csv(read_text(path), path);
}

std::string csv_text(const std::vector<std::string>& columns,
                     const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += ',';
      const std::string cell = printable(cells[i]);
      if (stands_bare(cell)) {
        text += cell;
        continue;
      }
      text += '"';
      for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    text += '\n';
  };
  add(columns);
  for (const auto& row : rows) add(row);
  return text;
}

}  // namespace stepsim
