#include "cli/row_reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Columns that say where a row is from, or something of it that no prediction needs.
constexpr std::array<std::string_view, 17> told{
    "id",        "source_rev",  "ref_file",       "dims_from",     "params_active_B",
    "train_s",   "gen_s",       "logprob_s",      "ref_logprob_s", "sync_s",
    "other_s",   "host_mem_GB", "derived_fields", "median_itl_ms", "command",
    "train_vpp", "ep"};

// Returns whether all letters of one stand in the other, in that order: "act_ckpt" in
// "activation_ckpt".
bool shortens(std::string_view brief, std::string_view whole) {
  std::size_t found = 0;
  for (const char c : whole)
    if (found < brief.size() && brief[found] == c) ++found;
  return found == brief.size();
}

std::string nearest(const std::string& column, const std::vector<std::string>& known) {
  if (std::string near = did_you_mean(column, known); !near.empty()) return near;
  constexpr std::size_t least = 3;
  std::string best;
  for (const std::string& name : known)
    if (name.size() >= least && name.size() > best.size() && name[0] == column[0] &&
        (shortens(name, column) || shortens(column, name)))
      best = name;
  return best.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", best);
}

void note_columns(const CsvTable& table, const std::vector<std::string>& known, RowTables& tables) {
  for (const std::string& column : table.columns)
    if (!column.empty() && !holds(known, column) && !holds(told, column))
      tables.notes.push_back(
          fmt::format("{}:1: {}: is not read{}", table.file, column, nearest(column, known)));
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
  const auto without = [](const StepRow& row) { return !has_figure(row); };
  const auto first = std::ranges::find_if(rows, without);
  if (first != rows.end())
    tables.notes.push_back(
        fmt::format("{}:{}: \"{}\" has no measured figure; {} of {} rows have none", file,
                    first->line, first->id, std::ranges::count_if(rows, without), rows.size()));
}

// Adds a table's rows. The columns show what a table is of.
void add_rows(const CsvTable& table, RowTables& tables) {
  if (holds_grpo_rows(table)) {
    append(tables.grpo, grpo_rows(table));
    note_columns(table, grpo_columns(), tables);
  } else if (holds_engine_rows(table)) {
    append(tables.engines, engine_rows(table));
    note_columns(table, engine_columns(), tables);
  } else {
    std::vector<StepRow> rows = step_rows(table);
    note_columns(table, step_columns(), tables);
    note_figures(table.file, rows, tables);
    append(tables.steps, std::move(rows));
  }
}

}  // namespace

RowTables read_row_tables(const std::vector<std::string>& files) {
  RowTables tables;
  Places places;
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    const CsvTable table = read_csv(file);
    if (table.columns.empty())
      throw UserError({{file, 0, "", "is empty: expected a line with the names of columns"}});
    check_ids(table, places, problems);
    add_rows(table, tables);
  }
  if (!problems.empty()) throw UserError(problems);
  complete_references(tables.steps);
  return tables;
}

bool holds_family(const RowTables& tables, std::string_view family) {
  if (family.starts_with("grpo ")) return !tables.grpo.empty();
  if (family.starts_with("engine ")) return !tables.engines.empty();
  return !tables.steps.empty();
}

}  // namespace stepsim
