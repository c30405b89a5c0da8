#include "analysis/report/page_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/sweep/sweep_reading.hpp"

namespace stepsim {
namespace {

double figure(const Outcome& outcome, std::string_view metric) {
  return outcome.of(metric).value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string mark_of(const SweepReport& report, std::size_t row) {
  if (report.fastest == row) return report.cheapest == row ? "fastest, cheapest" : "fastest";
  if (report.cheapest == row) return "cheapest";
  return std::find(report.front.begin(), report.front.end(), row) != report.front.end() ? "front"
                                                                                        : "";
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

}  // namespace

PageSweep page_sweep(const SweepTable& table, const SweepReport& report,
                     std::span<const WhatIf> changes) {
  PageSweep sweep{table.title, table.keys, {}, points_worth_having(table, report), {}};
  for (std::string& line : scaling_lines(report)) sweep.reading.push_back(std::move(line));
  for (const WhatIf& each : changes) sweep.changes.emplace_back(each.change, each.gain);
  sweep.points.reserve(table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const SweepRow& row = table.rows[i];
    sweep.points.push_back({.values = row.values,
                            .reason = row.outcome.feasible ? "" : row.outcome.reason,
                            .mark = mark_of(report, i),
                            .step_time = figure(row.outcome, "step_time"),
                            .rate = figure(row.outcome, "tokens_per_second_per_gpu"),
                            .memory = figure(row.outcome, "peak_memory"),
                            .capacity = figure(row.outcome, "memory_capacity"),
                            .parts = parts_of(row.outcome)});
  }
  return sweep;
}

}  // namespace stepsim
