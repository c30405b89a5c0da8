// `explain` says why one step takes longer than another.

#include <fmt/format.h>

#include <array>

#include "analysis/studies/explain/summary.hpp"
#include "cli/command.hpp"
#include "cli/engine_options.hpp"
#include "cli/explain_output.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

NamedStep read_step(const CommandLine& line, const std::string& word,
                    const std::vector<Setting>& settings) {
  return {word, word, settings, load_scenario(line.data, word, settings)};
}

}  // namespace

int explain_command(const CommandLine& line) {
  const auto options = parse("explain", line.words);
  if (!options) return exit_code::yes;
  const std::vector<Setting> shared = shared_settings_of(*options);
  const std::vector<Setting> changes = settings_of(*options);  // those, then --set
  if (options->words.size() == 1 && changes.size() == shared.size())
    throw UserError("compared with what? name a second scenario, or change this one with --set");
  require_one_form(*options, {"csv", "json", "brief"});
  const NamedStep a = read_step(line, options->words.front(), shared);
  NamedStep b = read_step(line, options->words.back(), changes);
  for (const auto& [key, value] : std::span(changes).subspan(shared.size()))
    b.label += fmt::format(" {}={}", key, value);
  if (options->has("each-at-limit") && (a.scenario.grpo || b.scenario.grpo))
    throw UserError(
        "--each-at-limit: a GRPO job has packs instead of micro-batches; grpo.pack_length with "
        "`stepsim sweep --find` looks for the longest that fits");
  ExplainOptions study;
  study.data = line.data;
  study.player = player_of(*options);
  study.at_limit = options->has("each-at-limit");
  study.carriers = study.settings = !options->has("csv");
  SettingOptions& replays = study.replays;
  replays.progress = progress_bar("replays");
  replays.most_replays = count_of(*options, "replays", 1, 1u << 16).value_or(replays.most_replays);
  study.most_draws = count_of(*options, "samples", 0, 4096);
  replays.seed = count_of(*options, "seed", 0, 1000000000).value_or(1);
  if (const auto workers = count_of(*options, "workers", 1, 1024)) replays.workers = *workers;
  const Explanation answer = explain(a, b, study);
  if (options->has("json"))
    print_result(
        explain_kind,
        {{"asked_a", "what was asked of A", asked_records(a.scenario, {a.source})},
         {"asked_b", "what was asked of B", asked_records(b.scenario, {b.source, changes})}},
        explanation_records(answer));
  else if (options->has("csv"))
    say("{}", explanation_csv(answer));
  else if (options->has("brief"))
    say("{}\nA: {}B: {}", summary_text(answer), taken_in_brief(a.scenario),
        taken_in_brief(b.scenario));
  else
    say("{}{}",
        taken_text(
            std::array{ReadSide{"A", a.source, a.scenario}, ReadSide{"B", b.source, b.scenario}}),
        explanation_text(answer));
  return exit_code::yes;
}

}  // namespace stepsim
