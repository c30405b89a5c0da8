#include "analysis/studies/sweep/sweep_reading.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

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

}  // namespace stepsim
