// `run`: one step of a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/grpo/grpo_trace.hpp"
#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/options.hpp"
#include "cli/outputs.hpp"
#include "cli/run_output.hpp"
#include "cli/runs.hpp"
#include "cli/source_options.hpp"
#include "sim/base/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs = with_source_options(std::array{
    OptionSpec{"output", "FILE", "write the step as an HDF5 trace", 'o'},
    OptionSpec{"fold", "MODE", "auto or off: simulate one of what is alike, or everything"},
    OptionSpec{"samples", "N",
               "draws of the constants behind the intervals, with the constants that move the step "
               "time most; 0: none (default: 8 for steps of few operations, and intervals alone)"},
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the file says, such as strategy.zero=2; repeats", 0, true},
    OptionSpec{"ideal", "CAUSE", "replay as if this cause cost nothing, such as launch; repeats", 0,
               true},
    OptionSpec{"json", "", "for machines"}});
constexpr Usage usage{
    "stepsim run SCENARIO [options]",
    "Replays one optimizer step of a scenario file operation by operation and prints its time, "
    "where the time goes, and whether it fits into memory. Exit code 1: it does not fit.",
    option_specs,
    "  stepsim run llama32-3b-sft-zero3\n"
    "  stepsim run my.yaml --set strategy.zero=2 --set job.micro_batch=4\n"
    "  stepsim run my.yaml --set cluster.xgmi.bandwidth=100GB/s --ideal launch\n"
    "  stepsim run my.yaml -o step.h5 --json\n",
    1};

constexpr std::size_t most_movers = 6;

CauseSet free_causes(const Options& options) {
  const std::vector<std::string> names(cause_names.begin(), cause_names.end());
  CauseSet free;
  for (const auto& [option, word] : options.values) {
    if (option != "ideal") continue;
    const auto place = std::ranges::find(names, word);
    if (place == names.end())
      throw UserError(fmt::format("--ideal: no cause \"{}\"{}; expected {}", word,
                                  did_you_mean(word, names), one_of(names)));
    free.add(static_cast<Cause>(place - names.begin()));
  }
  return free;
}

int run_grpo_scenario(const CommandLine& line, const Options& options, const Scenario& scenario,
                      const std::vector<Setting>& settings) {
  const auto interval =
      interval_of_run({.data = line.data, .scenario = options.words.front(), .settings = settings},
                      scenario, count_of(options, "samples", 0, 4096).value_or(0));
  const GrpoPrediction prediction = predict_grpo(scenario);
  if (const auto output = options.get("output"); output && prediction.ran)
    write_run(*output, grpo_trace(scenario, prediction));
  if (options.has("json"))
    print_result(grpo_kind, asked_records(scenario, {options.words.front(), settings}),
                 grpo_records(scenario, prediction, interval));
  else
    fmt::print("{}{}", assumptions_text(scenario.assumptions),
               grpo_text(scenario, prediction, interval));
  return prediction.memory.failure ? exit_code::no : exit_code::yes;
}

}  // namespace

int run_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which scenario? usage: {}", usage.call));
  const std::vector<Setting> settings = settings_of(*options);
  const bool fold = word_of(*options, "fold", "auto", {"auto", "off"}) == "auto";
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  if (const auto output = options->get("output"))
    require_no_input(*output, files_of(line, options->words.front(), scenario));
  if (scenario.grpo) return run_grpo_scenario(line, *options, scenario, settings);
  const CauseSet free = free_causes(*options);
  if (!free.empty() && options->has("output"))
    throw UserError("--ideal: a step with free causes is no run to keep; leave out --output");
  const auto samples = count_of(*options, "samples", 0, 4096);
  const auto interval = interval_of_run({.data = line.data,
                                         .scenario = options->words.front(),
                                         .settings = settings,
                                         .free = free,
                                         .movers = samples ? most_movers : 0},
                                        scenario, samples);
  Prediction prediction = predict(scenario, fold ? Folding::automatic : Folding::off, free);
  if (interval) add_interval(prediction.run, *interval);
  if (const auto output = options->get("output")) write_run(*output, prediction.run);
  if (options->has("json"))
    print_result(run_kind, asked_records(scenario, {options->words.front(), settings}),
                 run_records(prediction, interval));
  else
    fmt::print("{}{}", assumptions_text(scenario.assumptions),
               run_text(scenario, prediction, interval));
  return prediction.memory.fit() == Fit::oom ? exit_code::no : exit_code::yes;
}

}  // namespace stepsim
