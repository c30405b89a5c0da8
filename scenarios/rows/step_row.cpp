#include "scenarios/rows/step_row.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "scenarios/read/defaults.hpp"
#include "scenarios/read/releases.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::array<NumberColumn<StepRow>, 10> step_numbers{{
    {"tok_s_gpu", &StepRow::tokens_per_gpu},
    {"tok_s_total", &StepRow::tokens},
    {"step_s", &StepRow::step},
    {"tflops_gpu", &StepRow::tflops},
    {"mfu_pct", &StepRow::mfu},
    {"hfu_pct", &StepRow::hfu},
    {"mem_GB", &StepRow::memory},
    {"gen_s", &StepRow::generation},
    {"train_s", &StepRow::training},
    {"sync_s", &StepRow::sync},
}};

constexpr std::array<std::string_view, 15> step_texts{"id",
                                                      "family",
                                                      "scenario",
                                                      "lighter",
                                                      "taken",
                                                      "not_expressed",
                                                      "flops_per_token",
                                                      "mem_counted",
                                                      "mem_kind",
                                                      "mem_bound",
                                                      "outcome",
                                                      "sync_of",
                                                      "load",
                                                      "framework_version",
                                                      "precision"};

constexpr std::array<std::string_view, 4> words_of_sync{"", "engines", "learners",
                                                        "learners without saving"};

// Returns the releases that a source states in words: "trl 0.13, peft 0.13.2 (beside the table)".
std::vector<std::pair<std::string, std::string>> stated_releases(const Catalogue& data,
                                                                 std::string_view text) {
  std::vector<std::pair<std::string, std::string>> stated;
  std::string before;
  constexpr std::string_view ends = " ,;()@";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(ends, at), text.size());
    std::string word(text.substr(at, end - at));
    for (char& each : word)
      each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    if (word.find('.') != std::string::npos && is_release(word) && !before.empty() &&
        is_on(data, release_shelf, before))
      stated.emplace_back(before, word);
    if (!word.empty()) before = word;
    at = end + 1;
  }
  return stated;
}

// Lays what other columns of the source say under its scenario: releases of programs, and adapters
// that peft keeps in 32 bits and nobody casts.
void lay_columns(const Catalogue& data, const StepRow& row, Document& run) {
  const auto lay = [&](const std::string& path, const std::string& value) {
    if (!run.peek(path)) run.set(path, value);
  };
  std::string peft;
  for (const auto& [program, release] : stated_releases(data, row.said("framework_version"))) {
    lay(fmt::format("{}.{}", releases_block, program), quoted_text(release));
    if (program == "peft") peft = release;
  }
  if (!run.peek("strategy.lora.rank") || peft.empty()) return;
  const bool wide = within_releases(peft, "0.12", "");
  if (wide && row.said("precision").find("no autocast") != std::string::npos)
    lay("strategy.lora.adapters", "fp32");
}

// Reads a word out of a closed list; another one is noted, and reads as the first.
template <std::size_t n>
std::size_t word_in(const StepRow& row, std::string_view column,
                    const std::array<std::string_view, n>& words,
                    std::vector<std::string>& unreadable) {
  const std::string said = row.said(column);
  const auto* place = std::ranges::find(words, said);
  if (place != words.end()) return static_cast<std::size_t>(place - words.begin());
  std::vector<std::string> known(words.begin(), words.end());
  std::erase(known, "");
  unreadable.push_back(fmt::format("{}: expected {}, found \"{}\"{}", column, one_of(known), said,
                                   did_you_mean(said, known)));
  return 0;
}

void read_memory(StepRow& row) {
  constexpr std::array<std::string_view, 5> kinds{"", "allocated", "reserved", "device", "unsaid"};
  constexpr std::array<std::string_view, 4> units{"", "GB", "GiB", "log"};
  if (row.said("mem_kind").starts_with("not compared")) row.memory.reset();
  if (!row.memory) return;
  if (const std::size_t kind = word_in(row, "mem_kind", kinds, row.missing); kind > 0)
    row.memory_kind = static_cast<MemoryKind>(kind - 1);
  row.memory_unit = units[word_in(row, "mem_counted", units, row.missing)];
  row.memory_bound = row.said("mem_bound") == "yes";
}

void read_counted_flops(StepRow& row) {
  row.counts_model_flops = row.said("flops_per_token") == "model";
  if (row.counts_model_flops) return;
  row.flops_per_token =
      number_in(row.said("flops_per_token"), "flops_per_token", row.missing).value_or(0);
}

// A column is a key of a scenario where its name says so; names without a dot are columns of the
// source in a table that has whole scenarios.
bool is_key(const CsvTable& table, const std::string& column) {
  constexpr std::array<std::string_view, 4> plain{"model", "stack", "recipe", "engine"};
  return column.find('.') != std::string::npos ||
         (!table.column("scenario") && holds(plain, column));
}

// Returns the row's scenario, without a name where it says none.
Document scenario_of(const Catalogue& data, const CsvTable& table, const StepRow& row) {
  const std::string said = row.said("scenario");
  Document document = parse_document(said.empty() ? "{}" : said, row.id);
  for (const auto& [column, cell] : row.printed)
    if (is_key(table, column)) document.set(column, cell);
  const Table root = document.root();
  if (!root.keys().empty() && !root.has("strategy")) document.set("strategy", "{}");
  if (!root.keys().empty()) lay_columns(data, row, document);
  return document;
}

// Returns a file's text: the run, under the row's name and family.
std::string named(const StepRow& row, const Document& run) {
  Document head = parse_document("{}", row.id);
  if (!run.peek("name")) head.set("name", quoted_text(row.id));
  if (!run.peek("family")) head.set("family", quoted_text(row.family));
  return (head.root().keys().empty() ? "" : head.canonical()) + run.canonical();
}

// Names what recipes and the stack fill in and the source does not say.
void name_defaults(const Catalogue& data, const Document& run, StepRow& row) {
  Document resolved = parse_document(run.canonical(), row.id);
  lay_defaults(data, resolved);
  for (const std::string& name : resolved.root().values("recipe")) {
    const auto taken = resolved.taken_from("recipe " + name);
    if (!taken.empty())
      row.assumed.push_back(fmt::format("as {} have it: {}",
                                        open_entry(data, recipe_shelf, name).root().text("title"),
                                        fmt::join(taken, "; ")));
  }
  const auto filled_in = [&](const std::string& path) -> std::string {
    return resolved.origin_of(path) == "stack " + row.stack ? *resolved.peek(path) : "";
  };
  if (const std::string skew = filled_in("strategy.moe.skew"); !skew.empty())
    row.assumed.push_back(fmt::format("tokens of experts that differ by {} of their mean", skew));
  if (const std::string rank = filled_in("strategy.lora.rank"); !rank.empty())
    row.assumed.push_back("adapters of rank " + rank);
  if (const std::string targets = filled_in("strategy.lora.targets"); !targets.empty())
    row.assumed.push_back(
        fmt::format("adapters beside {} matrices", targets == "linear" ? "dense" : targets));
}

void read_lighter(const Document& run, StepRow& row) {
  const Document ways = parse_document(row.said("lighter"), row.id);
  for (const std::string& way : ways.root().keys()) {
    Document lighter = parse_document(run.canonical(), row.id);
    const Table settings = ways.root().table(way);
    for (const std::string& key : settings.keys()) lighter.set(key, settings.one_line(key));
    row.lighter.push_back({way, named(row, lighter)});
  }
}

void read_scenario(const Catalogue& data, const CsvTable& table, StepRow& row) {
  const Document run = scenario_of(data, table, row);
  row.run = run.canonical();
  if (run.root().keys().empty()) {
    row.missing.emplace_back(
        "a scenario: in a column \"scenario\", or in columns named by its keys, as cluster.node");
    return;
  }
  row.stack = run.peek("stack").value_or("");
  row.grpo = row.grpo || run.peek("job.method") == "grpo";
  row.scenario = named(row, run);
  if (!row.grpo) name_defaults(data, run, row);
  if (!row.said("lighter").empty()) read_lighter(run, row);
}

StepRow step_row(const Catalogue& data, const CsvTable& table, const CsvTable::Row& line) {
  StepRow row = row_of<StepRow>(table, line, step_numbers);
  for (const std::string& column : table.columns)
    if (const std::string_view cell = trimmed(table.cell(line, column)); !cell.empty())
      row.printed.emplace(column, cell);
  if (row.family.empty()) row.family = "rows of " + table.file;
  row.grpo = row.family.starts_with("grpo ");
  row.sync_of = static_cast<SyncOf>(word_in(row, "sync_of", words_of_sync, row.missing));
  constexpr std::array<std::string_view, 3> outcomes{"", "ran", "oom"};
  row.outcome = outcomes[word_in(row, "outcome", outcomes, row.missing)];
  read_memory(row);
  read_counted_flops(row);
  if (row.missing.empty()) try {
      read_scenario(data, table, row);
    } catch (const UserError& error) {
      row.missing.emplace_back(error.what());
    }
  return row;
}

}  // namespace

std::string StepRow::said(std::string_view column) const {
  const auto place = printed.find(column);
  return place == printed.end() ? "" : place->second;
}

double StepRow::number(std::string_view column) const {
  std::vector<std::string> none;
  return number_in(said(column), column, none).value_or(0);
}

bool StepRow::has_figure() const {
  return !outcome.empty() || std::ranges::any_of(step_numbers, [&](const auto& column) {
    return bool(this->*column.second);
  });
}

double StepRow::measured_memory(const Stack::MemoryLog& log) const {
  const bool binary = memory_unit == "GiB" || (memory_unit == "log" && log.binary);
  return memory.value_or(0) * (binary ? 0x1p30 : 1e9);
}

std::vector<StepRow> step_rows(const Catalogue& data, const CsvTable& table) {
  require_columns(table, {"id"});
  return mapped(table.rows, [&](const CsvTable::Row& line) { return step_row(data, table, line); });
}

std::vector<std::string> step_columns() {
  std::vector<std::string> names(step_texts.begin(), step_texts.end());
  for (const auto& [column, member] : step_numbers) names.emplace_back(column);
  return names;
}

}  // namespace stepsim
