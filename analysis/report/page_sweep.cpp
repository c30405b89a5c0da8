#include <fmt/format.h>

#include "analysis/report/page.hpp"
#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

std::string mark_of(const SweepReport& report, std::size_t row) {
  if (report.alike) return "";
  if (report.fastest == row) return report.cheapest == row ? "fastest, cheapest" : "fastest";
  if (report.cheapest == row) return "cheapest";
  return holds(report.front, row) ? "front" : "";
}

std::vector<std::pair<std::string, double>> parts_of(const Outcome& outcome) {
  std::vector<std::pair<std::string, double>> parts;
  const auto add = [&](std::string_view cause) {
    const auto seconds = outcome.of(fmt::format("time.{}", cause));
    if (seconds && *seconds > 0) parts.emplace_back(cause, *seconds);
  };
  // The phases of a GRPO step follow each other; causes are of its training alone.
  if (outcome.of("learners")) {
    for (const PhaseSpec& phase : phase_specs()) add(phase.key);
    return parts;
  }
  for (const std::string_view cause : cause_names) add(cause);
  add("idle");
  return parts;
}

// Writes "strategy.checkpointing: full: 12.4 s a step, 71.0 GB".
std::string remedy_text(const NextStep& step) {
  const auto time = step.outcome.of("step_time");
  return fmt::format("{}: {}{}", step.change,
                     time ? to_text(Seconds{*time}) + " a step, " : std::string(),
                     to_text(Bytes{step.needed}));
}

}  // namespace

Records page_sweep(const SweepTable& table, const SweepReport& report, const SweepAdvice& advice) {
  std::vector<std::string> reading = points_worth_having(table, report);
  for (std::string& line : scaling_lines(report)) reading.push_back(std::move(line));
  const auto gains =
      mapped(advice.faster, [](const WhatIf& each) { return std::pair(each.change, each.gain); });
  RecordList points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Outcome& outcome = table.rows[i].outcome;
    points.items.emplace_back(
        "", "",
        Records{{"values", "of the keys", list_of(table.rows[i].values)},
                {"reason", "why it cannot run", outcome.feasible ? "" : outcome.reason},
                {"mark", "why it is worth a look", mark_of(report, i)},
                {"step_time", "s", outcome.of("step_time")},
                {"gpus", "of the point", outcome.of("gpus")},
                {"tokens", "of a step", outcome.of("tokens_per_step")},
                {"rate", "tokens per second and GPU", outcome.of("tokens_per_second_per_gpu")},
                {"memory", "bytes", outcome.of("peak_memory")},
                {"capacity", "bytes", outcome.of("memory_capacity")},
                {"parts", "seconds by cause, or by phase", pairs_of(parts_of(outcome))}});
  }
  std::vector<std::string> remedies;
  if (advice.nearest)
    for (const auto* steps : {&advice.nearest->fitting.single, &advice.nearest->fitting.pairs,
                              &advice.nearest->fitting.nodes})
      for (const NextStep& step : *steps) remedies.push_back(remedy_text(step));
  return {{"title", "of the scenario", table.title},
          {"keys", "that were varied", list_of(table.keys)},
          {"points", "one for each combination", points},
          {"reading", "what they say", list_of(reading)},
          {"nearest", "where none can run: the point that lacks least memory",
           advice.nearest ? settings_text(table, table.rows[advice.nearest->row]) : ""},
          {"remedies", "what makes it run", list_of(remedies)},
          {"changes", "of the fastest point: what each gains", pairs_of(gains)}};
}

}  // namespace stepsim
