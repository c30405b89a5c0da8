#include "scenarios/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "sim/error.hpp"

namespace stepsim {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// The name whose list holds the longest word that the text contains.
struct Best {
  std::string name;
  std::size_t length = 0;

  void offer(const std::string& candidate, const std::vector<std::string>& words,
             const std::string& text) {
    for (const std::string& word : words)
      if (word.size() > length && text.find(lower(word)) != std::string::npos) {
        name = candidate;
        length = word.size();
      }
  }
};

struct NumberReader {
  const CsvTable& table;
  std::vector<Problem> problems;

  double operator()(const CsvTable::Row& row, std::string_view column) {
    const std::string_view cell = table.cell(row, column);
    if (cell.empty()) return 0;
    double value = 0;
    const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc() && rest == cell.data() + cell.size() && value >= 0 && value < 1e30)
      return value;
    problems.push_back({table.file, row.line, std::string(column),
                        fmt::format("expected a number, found \"{}\"", cell)});
    return 0;
  }
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto place = std::find(columns.begin(), columns.end(), name);
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
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw UserError({{path, 0, "", "cannot be read, or is empty"}});
  return parse_csv(text.view(), path);
}

std::vector<MeasuredCollective> measured_collectives(const CsvTable& table) {
  std::vector<Problem> missing;
  for (const std::string_view needed : {"collective", "hardware"})
    if (!table.column(needed))
      missing.push_back({table.file, 1, std::string(needed),
                         "the column is missing" + did_you_mean(needed, table.columns)});
  if (!missing.empty()) throw UserError(missing);
  NumberReader number{table, {}};
  std::vector<MeasuredCollective> rows;
  for (const CsvTable::Row& row : table.rows) {
    MeasuredCollective made;
    made.line = row.line;
    made.id = std::string(table.cell(row, "id"));
    if (made.id.empty()) made.id = fmt::format("line {}", row.line);
    made.collective = std::string(table.cell(row, "collective"));
    made.hardware = std::string(table.cell(row, "hardware"));
    made.interconnect = std::string(table.cell(row, "interconnect"));
    made.algorithm = std::string(table.cell(row, "algo"));
    made.nodes = std::max(1u, static_cast<std::uint32_t>(number(row, "nodes")));
    made.gpus = std::max(1u, static_cast<std::uint32_t>(number(row, "gpus")));
    made.bytes = number(row, "size_bytes");
    made.time = number(row, "time_us") * 1e-6;
    made.rate = number(row, "busbw_GBps") * 1e9;
    rows.push_back(std::move(made));
  }
  if (!number.problems.empty()) throw UserError(number.problems);
  return rows;
}

std::optional<ClusterChoice> machine_of(const std::string& data, const MeasuredCollective& row) {
  Best node, network;
  for (const std::string& name : names_on(data, node_shelf))
    node.offer(name, open_entry(data, node_shelf, name).root().texts_or("measured_as"),
               lower(row.hardware));
  if (node.length == 0) return std::nullopt;
  ClusterChoice choice{.name = node.name, .nodes = row.nodes, .network = ""};
  if (row.nodes < 2) return choice;
  for (const std::string& name : names_on(data, network_shelf))
    network.offer(name, open_entry(data, network_shelf, name).root().texts_or("measured_as"),
                  lower(row.interconnect + " " + row.hardware));
  choice.network = network.name;
  return choice;
}

}  // namespace stepsim
