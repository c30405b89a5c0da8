// `memory` says whether a scenario fits, and if not, what would make it fit.
#include <fmt/format.h>

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
#include "cli/taken_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t all_changes = 100;

// Writes the answer first, then what it is an answer about.
std::string head_of(const Scenario& scenario, const Footprint& f,
                    const std::vector<OtherVerdict>& others) {
  return fmt::format("{}{}{} of {} usable: {}\n{}\n{}{}\n", title_line(scenario),
                     others.empty() ? "" : "as assumed: ", to_text(Bytes{f.needed()}),
                     to_text(Bytes{f.capacity}), verdict_text(f), others_text(f, others),
                     taken_paragraph(scenario), not_modelled_paragraph(scenario));
}

// A run that does not fit gets its largest micro-batch among what would make it fit.
std::optional<std::int64_t> largest_of(const Scenario& scenario, const Footprint& f) {
  if (f.fit() == Fit::oom) return std::nullopt;
  return largest_micro_batch(scenario, fits_from);
}

std::string largest_text(const Scenario& scenario, const Footprint& f) {
  const auto largest = largest_of(scenario, f);
  if (!largest) return "";
  return fmt::format("the largest micro-batch that fits in {}: {}\n", chance_text(fits_from),
                     *largest > 0 ? std::to_string(*largest) : "none");
}

std::string text_of(const Scenario& scenario, const Footprint& f) {
  std::string text =
      fmt::format("{}\n{}\n", classes_table(f, scenario.cluster.gpu.title), moments_table(f));
  text += fmt::format("{}; the peak is in {}{}{}\n", verdict_text(f), f.device.peak.phase,
                      f.device.peak.name == f.device.peak.phase ? "" : ", at " + f.device.peak.name,
                      stage_text(f));
  text += shown_text(f, device_tool(scenario)) + failure_text(f) + host_text(f) +
          largest_text(scenario, f);
  text +=
      "this follows the order of the program; over time gradients wait for reductions and copies, "
      "and gathers\ncome early: `stepsim run` has both\n";
  return text + notes_text(scenario);
}

Records records_of(const Footprint& f, std::optional<std::int64_t> largest,
                   const std::optional<MemoryComparison>& beside, const FittingSteps& fitting,
                   const std::vector<OtherVerdict>& others) {
  return joined({footprint_records(f),
                 {{"largest_micro_batch", "that fits in 9 of 10 runs; null where this does not fit",
                   largest}},
                 {comparison_record(beside)},
                 fitting_records(fitting),
                 {others_record(others)}});
}

}  // namespace

Records memory_sample() {
  return records_of(footprint_sample(), 1, comparison_sample(),
                    {{NextStep{}}, {NextStep{}}, {NextStep{}}}, {OtherVerdict{}});
}

int memory_command(const CommandLine& line) {
  const auto options = parse("memory", line.words);
  if (!options) return exit_code::yes;
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
          memory.failure ? fitting_text(fitting, all_changes) : "");
    return memory.failure ? exit_code::no : exit_code::yes;
  }
  Footprint needs = footprint(scenario);
  needs.reserved = reserved_in_order(scenario, needs);
  const bool fits = needs.fit() != Fit::oom;
  const auto others = fits ? std::vector<OtherVerdict>{} : other_verdicts(question);
  std::optional<MemoryComparison> beside;
  if (snapshot) beside = load_comparison(line.data, scenario, needs, *snapshot);
  if (options->has("json")) {
    print_result(memory_kind, asked,
                 records_of(needs, largest_of(scenario, needs), beside,
                            fits ? FittingSteps{} : fitting_steps(question), others));
  } else if (options->has("brief")) {
    say("{}{} of {} usable: {}\n{}", beside ? sentence_of(*beside) : "",
        to_text(Bytes{needs.needed()}), to_text(Bytes{needs.capacity}), verdict_text(needs),
        taken_in_brief(scenario));
  } else {
    print_at_once(head_of(scenario, needs, others) + taken +
                  (beside ? comparison_text(*beside) : "") + text_of(scenario, needs));
    if (!fits) say("{}", fitting_text(fitting_steps(question), all_changes));
  }
  return fits ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
