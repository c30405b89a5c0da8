#include "analysis/studies/sweep/sweep_reading.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/outcome/known_changes.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

std::string scaling_text(const Scaling& scaling) {
  const ScalingPoint &first = scaling.points.front(), &last = scaling.points.back();
  std::string text = scaling.name.empty() ? "" : scaling.name + ": ";
  text +=
      fmt::format("from {} to {} GPUs {:.2f} times as fast, efficiency {}", first.gpus, last.gpus,
                  last.efficiency * last.gpus / first.gpus, percent(last.efficiency, 0));
  if (scaling.knee) {
    const ScalingPoint& knee = scaling.points[*scaling.knee];
    text += fmt::format("; the knee is at {} GPUs: no larger machine brings half of what it could",
                        knee.gpus);
  } else {
    text += "; no knee";
  }
  text += scaling.fixed_batch ? "; the batch stays the same (strong scaling)"
                              : "; the batch grows with the machine (weak scaling)";
  return text;
}

constexpr std::size_t most_shown = 3;

// Evaluates the point with the change. It is impossible where the scenario has no place for it.
Outcome answer_to(const Catalogue& data, const SweepPlan& plan, std::vector<Setting> settings,
                  const KnownChange& change) {
  append(settings, change.settings);
  try {
    return evaluate(data, plan.scenario, settings);
  } catch (const UserError& error) {
    return impossible(error.what());
  }
}

// Returns the sweep as it was asked for; nothing where its scenario is not at hand any more, or is
// another one now.
std::optional<SweepPlan> asked_plan(const Catalogue& data, const SweepTable& table) {
  SweepPlan plan;
  plan.scenario = table.source;
  plan.fixed = table.fixed;
  for (const std::string& key : table.keys) plan.axes.push_back({{key}, {}});
  try {
    if (content_of(find_scenario(data, table.source)).canonical() == table.scenario) return plan;
  } catch (const UserError&) {
  }
  return std::nullopt;
}

// The three that gain most, of every change known here that can be made to this point.
std::vector<WhatIf> what_ifs(const Catalogue& data, const SweepPlan& plan, const SweepRow& row) {
  const double now = row.outcome.of("tokens_per_second").value_or(0);
  if (now <= 0) return {};
  const std::vector<Setting> settings = settings_of(plan, row.values);
  const std::vector<KnownChange> candidates =
      known_changes(data, load_scenario(data, plan.scenario, settings));
  std::vector<WhatIf> found;
  const auto task = [&](std::size_t i) { return answer_to(data, plan, settings, candidates[i]); };
  const auto done = [&](std::size_t i, Outcome outcome) {
    const double gain = outcome.of("tokens_per_second").value_or(0) / now - 1;
    const auto& [change, rows] = candidates[i];
    if (outcome.feasible && gain > worth_showing)
      found.push_back({change_text(change, rows), gain, std::move(outcome)});
  };
  in_workers(candidates.size(), usual_workers(), task, done);
  std::ranges::sort(found, [](const WhatIf& a, const WhatIf& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.change < b.change;
  });
  // The best of several values of one key is enough.
  std::vector<WhatIf> best;
  for (WhatIf& each : found) {
    const std::string key = each.change.substr(0, each.change.find(':'));
    const bool said = std::ranges::any_of(
        best, [&](const WhatIf& other) { return other.change.starts_with(key + ":"); });
    if (!said && best.size() < most_shown) best.push_back(std::move(each));
  }
  return best;
}

// Returns nothing where none of them lacks memory alone.
std::optional<NearestRun> nearest_run(const Catalogue& data, const SweepPlan& plan,
                                      const SweepTable& table) {
  std::optional<std::size_t> nearest;
  double least = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Outcome& outcome = table.rows[i].outcome;
    const auto needed = outcome.of("peak_memory"), capacity = outcome.of("memory_capacity");
    if (!needed || !capacity || (nearest && *needed / *capacity >= least)) continue;
    nearest = i;
    least = *needed / *capacity;
  }
  if (!nearest) return std::nullopt;
  const std::vector<Setting> settings = settings_of(plan, table.rows[*nearest].values);
  const Scenario scenario = load_scenario(data, plan.scenario, settings);
  return NearestRun{*nearest, fitting_steps({data, plan.scenario, settings, scenario})};
}

}  // namespace

std::string settings_text(const SweepTable& table, const SweepRow& row) {
  const auto differs = [&](std::size_t k) {
    return std::ranges::any_of(
        table.rows, [&](const SweepRow& other) { return other.values[k] != row.values[k]; });
  };
  std::string text;
  for (std::size_t k = 0; k < table.keys.size(); ++k)
    if (!row.values[k].empty() && (table.rows.size() == 1 || differs(k)))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", table.keys[k], row.values[k]);
  return text;
}

std::string rate_text(double per_second) {
  return per_second >= 1e5 ? fmt::format("{:.0f} k", per_second / 1e3)
                           : fmt::format("{:.0f}", per_second);
}

std::vector<std::string> points_worth_having(const SweepTable& table, const SweepReport& report) {
  std::vector<std::string> lines;
  if (!report.fastest || !report.cheapest || !report.smallest) return lines;
  const auto figures = [&](std::size_t row) {
    const Outcome& outcome = table.rows[row].outcome;
    const auto money = outcome.of("cost_per_million_tokens");
    return fmt::format("{} tok/s, {:.3g} GPU-h per million tokens{}",
                       rate_text(outcome.of("tokens_per_second").value_or(0)),
                       outcome.of("gpu_time_per_million_tokens").value_or(0) / 3600,
                       money ? fmt::format(" for {:.3g}", *money) : "");
  };
  if (report.alike) {
    lines.push_back(fmt::format(
        "{} alike: {}", report.feasible == 2 ? "both" : fmt::format("all {}", report.feasible),
        figures(*report.fastest)));
    return lines;
  }
  const auto add = [&](std::string_view what, std::size_t row) {
    lines.push_back(
        fmt::format("{:<9} {}: {}", what, settings_text(table, table.rows[row]), figures(row)));
  };
  add("fastest", *report.fastest);
  add("cheapest", *report.cheapest);
  if (*report.smallest != *report.fastest && *report.smallest != *report.cheapest &&
      !report.scalings.empty())
    add("smallest", *report.smallest);
  if (report.front.size() > 2)
    lines.push_back(fmt::format("{} points are on the front: none is both faster and cheaper",
                                report.front.size()));
  return lines;
}

std::vector<std::string> scaling_lines(const SweepReport& report) {
  return mapped(report.scalings, [&](const Scaling& scaling) { return scaling_text(scaling); });
}

SweepAdvice advice_on(const Catalogue& data, const SweepPlan& plan, const SweepTable& table,
                      const SweepReport& report) {
  SweepAdvice advice;
  if (report.fastest) advice.faster = what_ifs(data, plan, table.rows[*report.fastest]);
  if (report.feasible == 0) advice.nearest = nearest_run(data, plan, table);
  return advice;
}

std::optional<SweepAdvice> advice_on(const Catalogue& data, const SweepTable& table,
                                     const SweepReport& report) {
  const auto plan = asked_plan(data, table);
  return plan ? std::optional(advice_on(data, *plan, table, report)) : std::nullopt;
}

}  // namespace stepsim
