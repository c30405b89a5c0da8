#include "scenarios/rows/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/letters.hpp"
#include "topology/called.hpp"

namespace stepsim {
namespace {

void require_columns(const CsvTable& table, const std::vector<std::string>& names) {
  std::vector<Problem> missing;
  for (const std::string& needed : names)
    if (!table.column(needed))
      missing.push_back(
          {table.file, 1, needed, "the column is missing" + did_you_mean(needed, table.columns)});
  if (!missing.empty()) throw UserError(missing);
}

}  // namespace

double NumberReader::operator()(const CsvTable::Row& row, std::string_view column) {
  const std::string_view cell = table.cell(row, column);
  if (cell.empty()) return 0;
  if (const auto value = number_from<double>(cell); value && *value >= 0 && *value < 1e30)
    return *value;
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
    made.machine = std::string(table.cell(row, "node"));
    made.network = std::string(table.cell(row, "network"));
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

std::optional<ClusterChoice> machine_of(const Catalogue& data, const MeasuredCollective& row) {
  constexpr std::uint32_t usual_gpus = 8;  // of a node that a table names by its card alone
  ClusterChoice choice{.name = row.machine, .nodes = row.nodes, .network = ""};
  std::uint32_t found = 0;
  if (choice.name.empty())
    if (const auto card = card_called(data, row.hardware))
      choice.name = node_of_card(data, card->gpu, usual_gpus, found);
  if (choice.name.empty()) return std::nullopt;
  if (row.nodes < 2) return choice;
  // A network that the table describes and does not name is not replaced by another one.
  if (row.network.empty() && !row.interconnect.empty()) return std::nullopt;
  choice.network = row.network;
  return choice;
}

}  // namespace stepsim
