// `report` writes runs and sweeps as a page to look at.
#include <fmt/format.h>

#include <deque>
#include <filesystem>

#include "analysis/studies/claims/claim_file.hpp"
#include "cli/engine_options.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "cli/runs.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/config.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

void add_sweep(const CommandLine& line, const std::string& path, Page& page) {
  if (page.sweep)
    throw UserError(
        fmt::format("{}: one sweep is enough for a page; `stepsim merge` puts shards "
                    "together",
                    path));
  const SweepTable table = read_sweep(path);
  const SweepReport report = report_of(table);
  page.sweep =
      page_sweep(table, report, advice_on(line.data, table, report).value_or(SweepAdvice{}));
}

bool holds_claims(const std::string& path) {
  std::error_code failed;
  return std::filesystem::path(path).extension() == ".yaml" &&
         std::filesystem::is_regular_file(path, failed) && read_document(path).root().has("claims");
}

void add_claims(const CommandLine& line, const std::string& path, Page& page) {
  JudgementOptions study;
  study.data = line.data;
  study.progress = progress_bar("replays");
  append(page.claims, page_claims(judge(read_claims(line.data, path), study)));
}

// A trace of something else than a scenario's step cannot be taken apart.
bool has_scenario(const Run& run) {
  return holds(run.summary, "step_time", &Scalar::name);
}

// A step with what its scenario was read as.
PageStep page_step(const CommandLine& line, const std::string& word,
                   const std::vector<Setting>& settings, const Run& run) {
  PageStep step{.label = word, .run = &run};
  if (!has_scenario(run)) return step;
  add_taken(load_scenario(line.data, word, settings), step);
  return step;
}

Records gap_between(const CommandLine& line, const Options& options, const std::string& a,
                    const std::string& b) {
  const std::vector<Setting> settings = settings_of(options);
  const auto step = [&](const std::string& word) {
    return NamedStep{word, word, settings, load_scenario(line.data, word, settings)};
  };
  ExplainOptions study;
  study.data = line.data;
  study.player = player_of(options);
  study.most_draws = count_of(options, "samples", 0, 4096);
  SettingOptions& replays = study.replays;
  replays.progress = progress_bar("replays");
  replays.most_replays = count_of(options, "replays", 1, 1u << 16).value_or(replays.most_replays);
  return page_gap(explain(step(a), step(b), study));
}

}  // namespace

int report_command(const CommandLine& line) {
  const auto options = parse("report", line.words);
  if (!options) return exit_code::yes;
  const auto path = options->get("output");
  if (!path) throw UserError("-o PAGE.html is missing: where the page goes");
  Page page;
  page.title = fmt::format("{}", fmt::join(options->words, " and "));
  const std::vector<Setting> settings = settings_of(*options);
  std::deque<Run> runs;  // the page points at them
  require_no_input(*path, options->words);
  for (const std::string& word : options->words)
    if (holds_sweep(word)) {
      add_sweep(line, word, page);
    } else if (holds_claims(word)) {
      add_claims(line, word, page);
    } else {
      require_no_input(*path, run_files(line, word, settings));
      runs.push_back(load_run(line, word, settings, player_of(*options)));
      page.steps.push_back(page_step(line, word, settings, runs.back()));
    }
  if (runs.size() > 2) throw UserError("two runs are enough for a page");
  if (runs.size() == 2 && has_scenario(runs[0]) && has_scenario(runs[1]) && !options->has("no-gap"))
    page.gap = gap_between(line, *options, page.steps[0].label, page.steps[1].label);
  const std::string html = page_html(page);
  write_file(*path, html);
  say("{}: {}\n", *path, to_text(Bytes{static_cast<double>(html.size())}));
  return exit_code::yes;
}

}  // namespace stepsim
