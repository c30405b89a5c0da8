#include "cli/next_steps_text.hpp"

#include <fmt/format.h>

#include <ranges>

#include "cli/result.hpp"
#include "cli/taken_text.hpp"

namespace stepsim {
namespace {

Records step_records(const NextStep& step) {
  const auto of = [&](std::string_view metric) { return step.outcome.of(metric); };
  return {{"change", "to be made, in the file's own words", step.change},
          {"set", "the same as KEY=VALUE", setting_list(step.settings)},
          {"step_time_s", "one optimizer step then", of("step_time"), Measure::seconds},
          {"tokens_per_second_per_gpu", "then, padding left out", of("tokens_per_second_per_gpu")},
          {"gain", "of tokens per second", step.gain, Measure::error},
          {"peak_memory_bytes", "needed then", of("peak_memory"), Measure::bytes}};
}

Records fitting_step(const NextStep& step) {
  const auto of = [&](std::string_view metric) { return step.outcome.of(metric); };
  return {
      {"change", "what would make it fit", step.change},
      {"set", "the same as KEY=VALUE", setting_list(step.settings)},
      {"peak_memory_bytes", "needed", Bytes{step.needed}},
      {"verdict", "verdict", to_text(step.fit)},
      {"step_time_s", "step", of("step_time"), Measure::seconds},
      {"tokens_per_second_per_gpu", "tok/s/GPU", of("tokens_per_second_per_gpu"), Measure::figure}};
}

std::string fitting_table(std::vector<NextStep> steps, std::string_view title, std::size_t most) {
  if (steps.size() > most) steps.resize(most);
  TextTable table = table_of(
      list_of(steps, fitting_step).items,
      fmt::format("change={}; peak_memory_bytes; verdict; step_time_s; tokens_per_second_per_gpu",
                  title));
  return "\n" + within_screen(table);
}

}  // namespace

std::string faster_text(const FasterSteps& faster, std::size_t most) {
  const std::string tried = faster.left_out == 0
                                ? fmt::format("{} changes tried", faster.tried)
                                : fmt::format("{} of {} changes tried, as the step is long",
                                              faster.tried, faster.tried + faster.left_out);
  if (faster.steps.empty())
    return fmt::format("\nfaster: nothing that is known here ({})\n", tried);
  TextTable table{{"faster, each alone", " step", " tok/s", " memory"}};
  for (const NextStep& step : faster.steps | std::views::take(most))
    table.rows.push_back({step.change, to_text(Seconds{step.outcome.of("step_time").value_or(0)}),
                          signed_percent(step.gain),
                          to_text(Bytes{step.outcome.of("peak_memory").value_or(0)})});
  return fmt::format("\n{}({})\n", within_screen(table), tried);
}

std::string fitting_text(const FittingSteps& fitting, std::size_t most) {
  std::string text;
  if (!fitting.single.empty())
    text += fitting_table(fitting.single, "to make it fit, each alone", most);
  if (!fitting.pairs.empty())
    text += "\nno single change that is known here makes it fit\n" +
            fitting_table(fitting.pairs, "to make it fit, together", most);
  if (!fitting.nodes.empty()) text += fitting_table(fitting.nodes, "or more nodes", most);
  return text.empty() ? "no single change that is known here makes it fit, and no two\n" : text;
}

Record faster_record(const std::optional<FasterSteps>& faster) {
  return parts_if(
      "faster", "what would make it faster, with --faster", faster,
      [](const FasterSteps& all) -> Records {
        return {{"changes", "each alone, the fastest first", list_of(all.steps, step_records)},
                {"tried", "so many changes", all.tried},
                {"left_out", "as the step is long", all.left_out}};
      });
}

Record faster_sample() {
  return faster_record(FasterSteps{{NextStep{}}, 0, 0, true});
}

Record fitting_record(const std::optional<FittingSteps>& fitting) {
  return parts_if("to_make_it_fit", "with --faster, where it does not", fitting, fitting_records);
}

Records fitting_records(const FittingSteps& fitting) {
  return {
      {"remedies", "single changes that would make it fit", list_of(fitting.single, fitting_step)},
      {"pairs", "of changes, where no single one is enough", list_of(fitting.pairs, fitting_step)},
      {"more_nodes", "that would make it fit", list_of(fitting.nodes, fitting_step)}};
}

}  // namespace stepsim
