#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/result.hpp"
#include "cli/source_options.hpp"
#include "cli/sweep_text.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 3> search_methods{"bounds", "bisection", "grid"};

// A larger value might do as well: the range ended before the condition did.
bool at_end(const Search& search, const SearchResult& result) {
  return search.largest && result.found && *result.found + 1 == result.steps.size();
}

std::string further(const Search& search, const std::string& last) {
  const auto number = parse_quantity(last);
  if (!number || number->dimension != Dimension::ratio || number->value < 1) return "";
  return fmt::format("; --vary {}={:.12g}:{:.12g}:*2 goes on", search.key, number->value,
                     64 * number->value);
}

std::string answer_of(const Search& search, const SearchResult& result, const std::string& last) {
  const std::string question = fmt::format("{} {} such that {}", search.largest ? "max" : "min",
                                           search.key, search.statement.text());
  if (!result.found)
    return fmt::format("{}: none of the {} values tried\n", question, result.steps.size());
  const SearchStep& best = result.steps[*result.found];
  const bool end = at_end(search, result);
  const std::string more = end ? ", where the values end" + further(search, last) : "";
  std::string text = fmt::format("{}: {}{}\n", question, end ? "at least " : "", best.value);
  switch (result.method) {
    case SearchMethod::bounds:
      return text + fmt::format("it holds at every one of {} values up to {}{}\n",
                                result.steps.size(), last, more);
    case SearchMethod::bisection:
      if (end)
        return text + fmt::format("by bisection, {} points; it holds up to {}{}\n",
                                  result.steps.size(), last, more);
      return text + fmt::format("by bisection, {} points\n", result.steps.size());
    case SearchMethod::grid:
      return text +
             fmt::format("it comes and goes, so all {} values were tried\n", result.steps.size());
  }
  return text;
}

RecordList step_list(const Search& search, const SearchResult& result) {
  return list_of(result.steps, [&](const SearchStep& step) {
    return joined({{{search.key, "one key for each search: the value that was tried", step.value},
                    {"holds", "the condition does", step.holds}},
                   outcome_records(step.outcome)});
  });
}

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

std::string search_text(const Search& search, const SearchResult& result) {
  TextTable table = table_of(
      step_list(search, result).items,
      fmt::format("{0}={0}; holds=; step_time_s=step time; tokens_per_second_per_gpu=tok/s/GPU; "
                  "peak_memory_bytes=memory; reason=",
                  search.key));
  return answer_of(search, result, result.steps.back().value) + "\n" + render(table);
}

Records search_records(const Search& search, const SearchResult& result) {
  const auto found = result.found ? std::optional(result.steps[*result.found].value) : std::nullopt;
  return {{"key", "that is searched", search.key},
          {"goal", "max or min", search.largest ? "max" : "min"},
          {"condition", "such that", search.statement.text()},
          {"method", "bounds, bisection or grid",
           search_methods[static_cast<std::size_t>(result.method)]},
          {"found", "its value", found},
          {"at_end_of_range", "a further value might do as well", at_end(search, result)},
          {"points", "that were tried", step_list(search, result)}};
}

Records search_sample() {
  SearchResult result;
  result.steps.push_back({0, "", false, impossible("")});
  return search_records(Search{true, "KEY", {}}, result);
}

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
