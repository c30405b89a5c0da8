// `explain` says why one step takes longer than another.
#include "analysis/studies/explain/explain.hpp"

#include <fmt/format.h>

#include <array>

#include "analysis/studies/explain/summary.hpp"
#include "cli/command.hpp"
#include "cli/engine_options.hpp"
#include "cli/explain_output.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr std::array explain_option_specs = with_source_options(std::array{
    engine_option, cfg_option,
    OptionSpec{"set", "KEY=VALUE",
               "change B, such as strategy.zero=2 or cluster.xgmi.bandwidth=100GB/s; repeats", 0,
               true},
    OptionSpec{"both", "KEY=VALUE",
               "changes A and B alike; may stand several times (--gpus, --gpu, --cluster and the "
               "other options of the machine do so by themselves)",
               0, true},
    OptionSpec{"each-at-limit", "", "compare also with the largest micro-batch of each that fits"},
    OptionSpec{
        "replays", "N",
        "most mixtures of A and B: of more, orders are drawn (default 256, which is all of eight "
        "settings)"},
    OptionSpec{"samples", "N",
               "most draws of the constants behind the ranges: eight at a time while more could "
               "change who is slower or which row is the largest; 0: none (default: 24, for steps "
               "of over 30000 operations 8, for GRPO 0)"},
    OptionSpec{"seed", "N", "of the drawn orders and constants (default 1)"}, workers_option,
    OptionSpec{"brief", "", "the sentence, and what was taken for each"},
    OptionSpec{"csv", "", "the rows, for machines"}, json_option});
constexpr Usage explain_usage{
    "stepsim explain A [B] [--set KEY=VALUE...] [options]",
    "Says in one sentence which setting makes A slower or faster than B, and by how much; then "
    "divides the gap among the settings that differ, and among the causes, in rows that add up to "
    "it. Settings are put from B into A, alone and with others, every mixture is replayed, and the "
    "gap is divided by Shapley value; of a cause it is what is exposed in A less what is in B. A "
    "and B are scenarios or traces that `run -o` wrote; --set changes B, and without B it changes "
    "a copy of A.",
    explain_option_specs,
    "  stepsim explain qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe\n"
    "  stepsim explain llama32-3b-sft-zero3 --set strategy.zero=2\n"
    "  stepsim explain my.yaml --gpu 4090 --set strategy.lora.rank=64\n"
    "  stepsim explain my.yaml --set cluster.xgmi.bandwidth=100GB/s --each-at-limit --json\n",
    2};

NamedStep read_step(const CommandLine& line, const std::string& word,
                    const std::vector<Setting>& settings) {
  return {word, word, settings, load_scenario(line.data, word, settings)};
}

}  // namespace

int explain_command(const CommandLine& line) {
  const auto options = parse(explain_usage, line.words);
  if (!options) return exit_code::yes;
  const std::vector<Setting> shared = shared_settings_of(*options);
  const std::vector<Setting> changes = settings_of(*options);  // those, then --set
  if (options->words.empty())
    throw UserError(fmt::format("which scenario? usage: {}", explain_usage.call));
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
