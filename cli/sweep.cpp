// `sweep` makes one table of many scenarios; `merge` makes the table out of its shards.

#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/outcome/played_again.hpp"
#include "cli/command.hpp"
#include "cli/engine_options.hpp"
#include "cli/job_cost.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/sweep_files.hpp"
#include "cli/sweep_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/config.hpp"

namespace stepsim {
namespace {

SweepPlan plan_of(const Options& options) {
  const std::string& word = options.words.front();
  SweepPlan plan;
  if (is_sweep_file(word))
    plan = read_sweep_file(word);
  else
    plan.scenario = word;
  for (Setting& setting : settings_of(options)) plan.fixed.push_back(std::move(setting));
  for (const std::string& text : all_of(options, "vary"))
    plan.axes.push_back(parse_axis("--vary", text));
  if (const auto together = all_of(options, "zip"); !together.empty())
    plan.axes.push_back(zip("--zip", together));
  for (const std::string& text : all_of(options, "where")) plan.where.push_back(text);
  return plan;
}

Shard shard_of(const Options& options) {
  const auto text = options.get("shard");
  if (!text) return {};
  const std::size_t slash = text->find('/');
  if (slash == std::string::npos)
    throw UserError(fmt::format("--shard: expected I/N such as 3/8, found \"{}\"", *text));
  constexpr std::uint32_t most = 1u << 20;
  const std::uint32_t of = parse_count("--shard", text->substr(slash + 1), 1, most);
  return {parse_count("--shard", text->substr(0, slash), 1, of), of};
}

// "name.csv" and "name.h5" mean "name".
std::string stem_of(const Options& options) {
  std::string name = options.get("output").value_or("");
  for (const std::string_view ending : {".csv", ".h5"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

// The file that says what to vary, the scenario, and what it reads beside it. Its points may read
// more; those are files that their settings name.
std::vector<std::string> inputs_of(const SweepQuestion& question, const std::string& word) {
  std::vector<std::string> inputs{word};
  const std::string scenario = find_scenario(question.data, question.plan.scenario);
  inputs.push_back(scenario);
  for (std::string& file :
       load_scenario(question.data, question.plan.scenario, question.plan.fixed).files)
    inputs.push_back(std::move(file));
  return inputs;
}

SweepPrice price_of_points(const Options& options, const SweepQuestion& question) {
  const auto of_cluster = [](const std::string& key) { return key.starts_with("cluster."); };
  return sweep_price_of(
      options, question.data,
      load_scenario(question.data, question.plan.scenario, question.plan.fixed).cluster,
      std::ranges::any_of(question.plan.keys(), of_cluster));
}

int run_shard(SweepQuestion& question, const std::string& stem, const std::string& word) {
  const std::string name =
      fmt::format("{}.shard-{}-of-{}", stem, question.shard.number, question.shard.of);
  question.journal = name + ".journal";
  require_own_names(name, inputs_of(question, word));
  const SweepTable table = run_sweep(question);
  write_shard(name, table);
  say("{}.h5: {} of {} points\n", name, table.rows.size(), table.points);
  return finish_sweep(question.journal, table, exit_code::yes);
}

constexpr std::string_view usual_bounds = "1:1024";

int find(const CommandLine& line, const Options& options, const std::string& question) {
  const Search search = parse_search(question);
  SweepPlan plan = plan_of(options);
  if (plan.axes.empty())
    plan.axes.push_back(parse_axis("--find", fmt::format("{}={}", search.key, usual_bounds)));
  for (const std::string_view name :
       {"shard", "output", "csv", "where", "zip", "samples", "price", "budget-money"})
    if (options.has(name)) throw UserError(fmt::format("--{}: means nothing with --find", name));
  const SearchResult result = run_search(line.data, plan, search);
  if (options.has("json")) {
    // The result shows the value that was found, or else the last one.
    const std::size_t shown = result.found.value_or(result.steps.size() - 1);
    const AskedScenario asked{plan.scenario, settings_of(plan, {result.steps[shown].value})};
    print_result(search_kind, asked_of(line.data, asked).value_or(Records{}),
                 search_records(search, result));
  } else {
    say("{}", search_text(search, result));
  }
  return result.found ? exit_code::yes : exit_code::no;
}

// Plays the row that a person looks for first by the engine of what is read.
std::optional<PlayedBy> fastest_again(const Catalogue& data, const SweepTable& table,
                                      const SweepReport& report, const Player& player) {
  if (!report.fastest) return std::nullopt;
  const SweepRow& row = table.rows[*report.fastest];
  std::vector<Setting> settings = table.fixed;
  // An empty value: this point leaves the key as it is in the scenario.
  for (std::size_t i = 0; i < table.keys.size(); ++i)
    if (!row.values[i].empty()) settings.emplace_back(table.keys[i], row.values[i]);
  return play_again(data, table.source, settings, *row.outcome.of("step_time"), player);
}

std::string fastest_text(const std::optional<PlayedBy>& played) {
  return played ? "\nthe fastest: " + to_text(*played) + "\n" : "";
}

}  // namespace

int sweep_command(const CommandLine& line) {
  const auto options = parse("sweep", line.words);
  if (!options) return exit_code::yes;
  require_one_form(*options, {"brief", "csv", "json"});
  if (const auto question = options->get("find")) return find(line, *options, *question);
  SweepQuestion question;
  question.data = line.data;
  question.plan = plan_of(*options);
  question.shard = shard_of(*options);
  question.workers = count_of(*options, "workers", 1, 4096).value_or(question.workers);
  question.samples = count_of(*options, "samples", 0, 4096).value_or(0);
  question.progress = progress_bar("points");
  if (options->has("price") || options->has("budget-money"))
    question.price = price_of_points(*options, question);
  const std::string stem = stem_of(*options);
  if (options->has("shard")) {
    if (stem.empty()) throw UserError("--shard: needs --output NAME, for merge to find the parts");
    return run_shard(question, stem, options->words.front());
  }
  if (!stem.empty()) {
    question.journal = stem + ".journal";
    require_own_names(stem, inputs_of(question, options->words.front()));
  }
  const SweepTable table = run_sweep(question);
  if (!stem.empty()) write_tables(stem, table);
  if (options->has("csv")) {
    say("{}", csv_of(table));
    return finish_sweep(question.journal, table, exit_code::yes);
  }
  const SweepReport report = report_of(table);
  const SweepAdvice advice = advice_on(line.data, question.plan, table, report);
  const SweepNotes notes = notes_on(line.data, table);
  const auto played = fastest_again(line.data, table, report, player_of(*options));
  if (options->has("json"))
    print_result(sweep_kind, {}, sweep_records(table, report, advice, notes, played));
  else if (options->has("brief"))
    say("{}", sweep_brief(table, report, advice, notes));
  else
    say("{}{}{}", notes.taken, sweep_text(table, report, advice), fastest_text(played));
  return finish_sweep(question.journal, table,
                      report.feasible > 0 ? exit_code::yes : exit_code::no);
}

int merge_command(const CommandLine& line) {
  const auto options = parse("merge", line.words);
  if (!options) return exit_code::yes;
  const std::string stem = stem_of(*options);
  if (!stem.empty()) require_own_names(stem, options->words);
  const SweepTable table = merge_shards(options->words);
  if (!stem.empty()) write_tables(stem, table);
  const SweepReport report = report_of(table);
  const auto advice = advice_on(line.data, table, report);
  if (!advice)
    say(stderr, "{} is not here as it was: no changes of the fastest point were tried\n",
        table.source);
  const auto played = advice
                          ? fastest_again(line.data, table, report, Player(EngineChoice::automatic))
                          : std::nullopt;
  const SweepAdvice tried = advice.value_or(SweepAdvice{});
  const SweepNotes notes = advice ? notes_on(line.data, table) : SweepNotes{};
  if (options->has("json"))
    print_result(sweep_kind, {}, sweep_records(table, report, tried, notes, played));
  else
    say("{}{}{}", notes.taken, sweep_text(table, report, tried), fastest_text(played));
  return exit_code::yes;
}

}  // namespace stepsim
