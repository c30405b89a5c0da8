#include "scenarios/rows/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

std::vector<MachineWords::Entry> words_on(const Catalogue& data, const Shelf& shelf) {
  std::vector<MachineWords::Entry> entries;
  for (const std::string& name : names_on(data, shelf))
    entries.emplace_back(name, open_entry(data, shelf, name).root().texts_or("measured_as"));
  return entries;
}

// Files are read whole, and checked, by those who simulate them.
double value_in(const Table& table, std::string_view key, Dimension dimension) {
  const auto quantity = parse_quantity(table.table(key).text("value"));
  return quantity && quantity->dimension == dimension ? quantity->value : 0;
}

NodeGpu gpu_of(const Catalogue& data, const std::string& node) {
  const Document document = open_entry(data, node_shelf, node);
  const std::string name = document.root().text("gpu");
  const Document gpu = open_entry(data, gpu_shelf, name);
  return {name, value_in(gpu.root().table("memory"), "capacity", Dimension::bytes)};
}

std::size_t longest_word(const std::vector<std::string>& words, const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : words)
    if (text.find(in_small_letters(word)) != std::string::npos)
      longest = std::max(longest, word.size());
  return longest;
}

}  // namespace

void require_columns(const CsvTable& table, const std::vector<std::string>& names) {
  std::vector<Problem> missing;
  for (const std::string& needed : names)
    if (!table.column(needed))
      missing.push_back(
          {table.file, 1, needed, "the column is missing" + did_you_mean(needed, table.columns)});
  if (!missing.empty()) throw UserError(missing);
}

double NumberReader::operator()(const CsvTable::Row& row, std::string_view column) {
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

std::uint32_t NumberReader::count(const CsvTable::Row& row, std::string_view column) {
  constexpr double most = 1 << 20;
  const double value = (*this)(row, column);
  if (value == std::floor(value) && value <= most)
    return std::max(1u, static_cast<std::uint32_t>(value));
  problems.push_back(
      {table.file, row.line, std::string(column),
       fmt::format("expected a whole number, found \"{}\"", table.cell(row, column))});
  return 1;
}

std::vector<MeasuredCollective> measured_collectives(const CsvTable& table) {
  require_columns(table, {"collective", "hardware"});
  NumberReader number{table, {}};
  std::vector<MeasuredCollective> rows;
  for (const CsvTable::Row& row : table.rows) {
    MeasuredCollective made;
    made.line = row.line;
    made.id = std::string(table.cell(row, "id"));
    if (made.id.empty()) made.id = fmt::format("line {}", row.line);
    const std::string_view source = table.cell(row, "source");
    made.source = std::string(source.substr(0, source.find(' ')));
    made.collective = std::string(table.cell(row, "collective"));
    made.hardware = std::string(table.cell(row, "hardware"));
    made.interconnect = std::string(table.cell(row, "interconnect"));
    made.algorithm = std::string(table.cell(row, "algo"));
    made.nodes = number.count(row, "nodes");
    made.gpus = number.count(row, "gpus");
    made.bytes = number(row, "size_bytes");
    made.time = number(row, "time_us") * 1e-6;
    made.rate = number(row, "busbw_GBps") * 1e9;
    rows.push_back(std::move(made));
  }
  if (!number.problems.empty()) throw UserError(number.problems);
  return rows;
}

std::vector<RowNote> row_notes(const CsvTable& table, std::span<const MeasuredCollective> rows) {
  require_columns(table, {"id", "left_out", "note"});
  std::vector<std::string> ids = mapped(rows, &MeasuredCollective::id);
  std::vector<Problem> problems;
  std::vector<RowNote> notes;
  for (const CsvTable::Row& row : table.rows) {
    const auto reject = [&](std::string_view column, std::string message) {
      problems.push_back({table.file, row.line, std::string(column), std::move(message)});
    };
    const std::string_view id = table.cell(row, "id"), left_out = table.cell(row, "left_out");
    if (!holds(ids, id))
      reject("id", fmt::format("no measured row \"{}\"{}", id, did_you_mean(id, ids)));
    if (left_out != "yes" && left_out != "no")
      reject("left_out", fmt::format("expected yes or no, found \"{}\"", left_out));
    if (table.cell(row, "note").empty()) reject("note", "is missing: say why");
    for (const RowNote& before : notes)
      if (before.id == id) reject("id", fmt::format("\"{}\" has a note already", id));
    notes.push_back({std::string(id), left_out == "yes", std::string(table.cell(row, "note"))});
  }
  if (!problems.empty()) throw UserError(problems);
  return notes;
}

MachineWords machine_words(const Catalogue& data) {
  MachineWords words{words_on(data, node_shelf), words_on(data, network_shelf)};
  words.data = data;
  for (const auto& [name, said] : words.nodes) words.gpus.push_back(gpu_of(data, name));
  return words;
}

std::string best_name(const std::vector<MachineWords::Entry>& entries, std::string_view text) {
  const std::string low = in_small_letters(text);
  std::string best;
  std::size_t length = 0;
  for (const auto& [name, words] : entries)
    if (const std::size_t found = longest_word(words, low); found > length) {
      best = name;
      length = found;
    }
  return best;
}

std::optional<ClusterChoice> machine_of(const MachineWords& words, const MeasuredCollective& row) {
  if (!row.machine.empty())
    return ClusterChoice{.name = row.machine, .nodes = row.nodes, .network = ""};
  const std::string node = best_name(words.nodes, row.hardware);
  if (node.empty()) return std::nullopt;
  ClusterChoice choice{.name = node, .nodes = row.nodes, .network = ""};
  if (row.nodes < 2) return choice;
  choice.network = best_name(words.networks, row.interconnect + " " + row.hardware);
  // A network that the table names and the catalogue does not have is not replaced by another one.
  if (choice.network.empty() && !row.interconnect.empty()) return std::nullopt;
  return choice;
}

}  // namespace stepsim
