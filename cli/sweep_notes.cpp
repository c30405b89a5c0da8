#include "cli/sweep_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/result.hpp"
#include "cli/source_options.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

std::vector<Setting> settings_of_row(const SweepTable& table, const SweepRow& row) {
  std::vector<Setting> settings = table.fixed;
  for (std::size_t k = 0; k < table.keys.size(); ++k)
    if (!row.values[k].empty()) settings.emplace_back(table.keys[k], row.values[k]);
  return settings;
}

// Returns the scenario as it stands, or as the first of its points that can run.
std::optional<Scenario> told_scenario(const Catalogue& data, const SweepTable& table) {
  if (auto scenario = scenario_if_sound(data, {table.source, table.fixed})) return scenario;
  const auto row =
      std::ranges::find_if(table.rows, [](const SweepRow& each) { return each.outcome.feasible; });
  if (row == table.rows.end()) return std::nullopt;
  return scenario_if_sound(data, {table.source, settings_of_row(table, *row)});
}

// Returns what became of one key of the source; nothing where it has no such key.
std::optional<SourceKey> key_of_source(const Catalogue& data, const SweepTable& table,
                                       const SweepRow& row, const std::string& key) {
  try {
    const auto translation =
        translate_source(data, find_scenario(data, table.source), settings_of_row(table, row));
    if (!translation) return std::nullopt;
    const auto place = std::ranges::find(translation->keys, key, &SourceKey::key);
    if (place != translation->keys.end()) return *place;
  } catch (const UserError&) {  // a point that cannot be read says so in its row
  }
  return std::nullopt;
}

// Returns a row for each value of the key, as far as a few.
std::vector<const SweepRow*> rows_by_value(const SweepTable& table, std::size_t key) {
  constexpr std::size_t most = 4;
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : table.rows)
    if (rows.size() < most && std::ranges::none_of(rows, [&](const SweepRow* each) {
          return each->values[key] == row.values[key];
        }))
      rows.push_back(&row);
  return rows;
}

// Notes that no value of a varied key changes the result.
std::string note_on(const Catalogue& data, const SweepTable& table, std::size_t k) {
  const std::string& key = table.keys[k];
  std::optional<SourceKey> told;
  for (const SweepRow* row : rows_by_value(table, k)) {
    const auto now = key_of_source(data, table, *row, key);
    if (!now || now->fate == KeyFate::used) return "";
    if (!told || now->fate == KeyFate::unmodelled) told = now;
  }
  if (!told) return "";
  const std::string remark = told->remark.empty() ? "" : fmt::format(" ({})", told->remark);
  return fmt::format(
      "{} is varied, and {}{}: points that differ in it alone are alike", key,
      told->fate == KeyFate::unmodelled ? "is not modelled" : "changes neither time nor memory",
      remark);
}

}  // namespace

SweepNotes notes_on(const Catalogue& data, const SweepTable& table) {
  SweepNotes told;
  const auto scenario = told_scenario(data, table);
  if (!scenario) return told;
  told.assumptions = scenario->assumptions;
  told.notes = scenario->notes;
  told.in_brief = taken_in_brief(*scenario);
  const std::string file = find_scenario(data, table.source);
  told.taken = taken_text(std::array{ReadSide{"", file, *scenario}});
  for (std::size_t k = 0; k < table.keys.size(); ++k) {
    const std::string note = note_on(data, table, k);
    if (note.empty()) continue;
    told.taken += fmt::format("note: {}\n\n", note);
    told.notes.push_back(note);
  }
  return told;
}

}  // namespace stepsim
