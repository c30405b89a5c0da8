#include "cli/row_reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Notes columns that begin as one that is read and that the table lacks; others are the source's
// own.
void note_columns(const CsvTable& table, const std::vector<std::string>& known, RowTables& tables) {
  constexpr std::size_t least = 4;
  for (const std::string& name : known)
    for (const std::string& column : table.columns)
      if (name.size() >= least && column.starts_with(name) && !table.column(name))
        tables.notes.push_back(
            fmt::format("{}:1: {}: is not read (did you mean \"{}\"?)", table.file, column, name));
}

// This says where each id stands.
using Places = std::map<std::string, std::string>;

void check_ids(const CsvTable& table, Places& places, std::vector<Problem>& problems) {
  for (const CsvTable::Row& row : table.rows) {
    const std::string id(trimmed(table.cell(row, "id")));
    if (id.empty()) continue;
    const auto [place, is_new] = places.emplace(id, fmt::format("{}:{}", table.file, row.line));
    if (!is_new)
      problems.push_back(
          {table.file, row.line, "id", fmt::format("\"{}\" is at {} already", id, place->second)});
  }
}

void note_figures(const std::string& file, const std::vector<StepRow>& rows, RowTables& tables) {
  const auto without = [](const StepRow& row) { return !row.has_figure(); };
  const auto first = std::ranges::find_if(rows, without);
  if (first != rows.end())
    tables.notes.push_back(
        fmt::format("{}:{}: \"{}\" has no measured figure; {} of {} rows have none", file,
                    first->line, first->id, std::ranges::count_if(rows, without), rows.size()));
}

// Adds a table's rows. The columns show what a table is of.
void add_rows(const Catalogue& data, const CsvTable& table, RowTables& tables) {
  if (holds_engine_rows(table)) {
    append(tables.engines, engine_rows(table));
    note_columns(table, engine_columns(), tables);
    return;
  }
  const std::vector<StepRow> rows = step_rows(data, table);
  note_columns(table, step_columns(), tables);
  note_figures(table.file, rows, tables);
  for (const StepRow& row : rows) (row.grpo ? tables.grpo : tables.steps).push_back(row);
}

}  // namespace

RowTables read_row_tables(const Catalogue& data, const std::vector<std::string>& files) {
  RowTables tables;
  Places places;
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    const CsvTable table = read_csv(file);
    if (table.columns.empty())
      throw UserError({{file, 0, "", "is empty: expected a line with the names of columns"}});
    check_ids(table, places, problems);
    add_rows(data, table, tables);
  }
  if (!problems.empty()) throw UserError(problems);
  return tables;
}

bool holds_family(const RowTables& tables, std::string_view family) {
  if (family.starts_with("grpo ")) return !tables.grpo.empty();
  if (family.starts_with("engine ")) return !tables.engines.empty();
  return !tables.steps.empty();
}

namespace {

// Returns the id as a file may be called everywhere.
std::string file_name(const std::string& id) {
  std::string name = id;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '-';
  }
  return name.starts_with('.') ? "-" + name : name;
}

std::string text_of(const PredictedRow& row) {
  std::string text;
  for (const std::string& assumed : row.assumed) {
    std::string line = assumed;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += fmt::format("# assumed: {}\n", line);
  }
  return text + row.scenario;
}

}  // namespace

std::size_t export_rows(const std::string& folder, std::span<const PredictedRow> rows) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw UserError({{folder, 0, "", "cannot be made: " + failed.message()}});
  std::vector<std::string> taken;
  for (const PredictedRow& row : rows) {
    if (!row.predicted() || row.scenario.empty()) continue;
    const std::string name = file_name(row.id);
    std::string free = name;
    for (int next = 2; holds(taken, free); ++next) free = fmt::format("{}-{}", name, next);
    write_file(fmt::format("{}/{}.yaml", folder, free), text_of(row));
    taken.push_back(free);
  }
  return taken.size();
}

}  // namespace stepsim
