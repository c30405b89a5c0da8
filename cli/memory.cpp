// `memory`: does a scenario fit, and if not, what would make it fit.
#include <fmt/format.h>

#include <array>

#include "analysis/studies/predict/footprint_text.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/source_options.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs = with_source_options(std::array{
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the file says, such as strategy.zero=2; repeats", 0, true},
    OptionSpec{"json", "", "for machines"}});
constexpr Usage usage{"stepsim memory SCENARIO [--json]",
                      "Adds up what a scenario needs in device and host memory, from loading the "
                      "model to the update, "
                      "without timing it. When it does not fit, the request that fails first is "
                      "named, and each single "
                      "change that would make it fit is computed. Exit code 1: it does not fit.",
                      option_specs, "  stepsim memory scenarios/template.yaml\n", 1};

RecordList remedy_list(const std::vector<Remedy>& changes) {
  return list_of(changes, [](const Remedy& remedy) -> Records {
    return {{"change", "what would make it fit", remedy.change},
            {"peak_memory_bytes", "needed", Bytes{remedy.footprint.needed()}},
            {"verdict", "verdict", to_text(remedy.footprint.fit())}};
  });
}

std::string text_of(const Scenario& scenario, const Footprint& f,
                    const std::vector<Remedy>& changes) {
  std::string text = fmt::format("{}\n\n{}\n{}\n", scenario.name,
                                 classes_table(f, scenario.cluster.gpu.title), moments_table(f));
  text += fmt::format("{}; the peak is in {}{}{}\n", verdict_text(f), f.device.peak.phase,
                      f.device.peak.name == f.device.peak.phase ? "" : ", at " + f.device.peak.name,
                      stage_text(f));
  text += shown_text(f) + failure_text(f) + host_text(f);
  text +=
      "this follows the order of the program; over time gradients wait for reductions and copies, "
      "and gathers\ncome early: `stepsim run` has both\n";
  if (f.fit() != Fit::oom) return text;
  if (changes.empty()) return text + "no single change that is known here makes it fit\n";
  return text + "\n" +
         render(table_of(remedy_list(changes).items,
                         {{"change"}, {"peak_memory_bytes"}, {"verdict"}}));
}

Records records_of(const Footprint& f, const std::vector<Remedy>& changes) {
  return joined({footprint_records(f),
                 {{"remedies", "single changes that would make it fit", remedy_list(changes)}}});
}

}  // namespace

Records memory_sample() {
  return records_of(footprint_sample(), {Remedy{}});
}

int memory_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which scenario? usage: {}", usage.call));
  const std::vector<Setting> settings = settings_of(*options);
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  const Records asked = asked_records(scenario, {options->words.front(), settings});
  const std::string taken = assumptions_text(scenario.assumptions);
  if (scenario.grpo) {
    const GrpoMemory memory = grpo_memory(scenario);
    if (options->has("json"))
      print_result(grpo_memory_kind, asked, grpo_memory_records(memory));
    else
      fmt::print("{}{}", taken, grpo_memory_text(scenario, memory));
    return memory.failure ? exit_code::no : exit_code::yes;
  }
  const Footprint needs = footprint(scenario);
  const bool fits = needs.fit() != Fit::oom;
  const std::vector<Remedy> changes = fits ? std::vector<Remedy>{} : remedies(scenario);
  if (options->has("json"))
    print_result(memory_kind, asked, records_of(needs, changes));
  else
    fmt::print("{}{}", taken, text_of(scenario, needs, changes));
  return fits ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
