// `memory` says whether a scenario fits, and if not, what would make it fit.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "analysis/studies/predict/footprint_text.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/memory_beside.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::array memory_option_specs = with_source_options(std::array{
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the file says, such as strategy.zero=2; repeats", 0, true},
    OptionSpec{"beside", "SNAPSHOT",
               "the real run: what torch.cuda.memory._dump_snapshot wrote; it is read, never run"},
    OptionSpec{
        "brief", "",
        "the verdict alone; of a file of another program a second line says what was taken for it"},
    OptionSpec{"json", "", "for machines"}});
constexpr Usage memory_usage{
    "stepsim memory SCENARIO [--json]",
    "Adds up what a scenario needs in device and host memory, from loading the "
    "model to the update, "
    "without timing it. When it does not fit, the request that fails first is "
    "named, and each single change that would make it fit is computed, with its "
    "step time; where there is none, pairs of changes; and more nodes. Exit code "
    "1: it does not fit.",
    memory_option_specs,
    "  stepsim memory scenarios/template.yaml\n"
    "  stepsim memory my.yaml --brief\n"
    "  stepsim memory my.yaml --beside snapshot.pickle\n",
    1};

std::string text_of(const Scenario& scenario, const Footprint& f) {
  std::string text = fmt::format("{}\n\n{}\n{}\n", scenario.name,
                                 classes_table(f, scenario.cluster.gpu.title), moments_table(f));
  text += fmt::format("{}; the peak is in {}{}{}\n", verdict_text(f), f.device.peak.phase,
                      f.device.peak.name == f.device.peak.phase ? "" : ", at " + f.device.peak.name,
                      stage_text(f));
  text += shown_text(f) + failure_text(f) + host_text(f);
  text +=
      "this follows the order of the program; over time gradients wait for reductions and copies, "
      "and gathers\ncome early: `stepsim run` has both\n";
  return text + notes_text(scenario);
}

Records records_of(const Footprint& f, const std::optional<MemoryComparison>& beside,
                   const FittingSteps& fitting) {
  return joined({footprint_records(f), {comparison_record(beside)}, fitting_records(fitting)});
}

}  // namespace

Records memory_sample() {
  return records_of(footprint_sample(), comparison_sample(),
                    {{NextStep{}}, {NextStep{}}, {NextStep{}}});
}

int memory_command(const CommandLine& line) {
  const auto options = parse(memory_usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty())
    throw UserError(fmt::format("which scenario? usage: {}", memory_usage.call));
  const std::vector<Setting> settings = settings_of(*options);
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  const Records asked = asked_records(scenario, {options->words.front(), settings});
  const std::string taken = assumptions_text(scenario.assumptions);
  const auto snapshot = options->get("beside");
  const NextStepQuestion question{.data = line.data,
                                  .source = options->words.front(),
                                  .settings = settings,
                                  .scenario = scenario,
                                  .progress = progress_bar("changes")};
  if (scenario.grpo) {
    if (snapshot) throw UserError("--beside: snapshots of GRPO jobs are not read, leave it out");
    const GrpoMemory memory = grpo_memory(scenario);
    FittingSteps fitting;
    if (memory.failure) fitting = fitting_steps(question);
    if (options->has("json"))
      print_result(grpo_memory_kind, asked,
                   joined({grpo_memory_records(memory), fitting_records(fitting)}));
    else
      say("{}{}{}{}", taken, grpo_memory_text(scenario, memory), notes_text(scenario),
          memory.failure ? fitting_text(fitting) : "");
    return memory.failure ? exit_code::no : exit_code::yes;
  }
  Footprint needs = footprint(scenario);
  needs.reserved = reserved_in_order(scenario, needs);
  const bool fits = needs.fit() != Fit::oom;
  std::optional<MemoryComparison> beside;
  if (snapshot) beside = load_comparison(line.data, scenario, needs, *snapshot);
  if (options->has("json")) {
    print_result(memory_kind, asked,
                 records_of(needs, beside, fits ? FittingSteps{} : fitting_steps(question)));
  } else if (options->has("brief")) {
    say("{}{} of {} usable: {}\n{}", beside ? sentence_of(*beside) : "",
        to_text(Bytes{needs.needed()}), to_text(Bytes{needs.capacity}), verdict_text(needs),
        taken_in_brief(scenario));
  } else {
    print_at_once(taken + (beside ? comparison_text(*beside) : "") + text_of(scenario, needs));
    if (!fits) say("{}", fitting_text(fitting_steps(question)));
  }
  return fits ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
