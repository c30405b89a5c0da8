#include "cli/energy_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr ByDrawer<std::string_view> drawer_titles{"GPUs", "hosts", "network"};

double sum_of(const ByDrawer<double>& energy) {
  return std::accumulate(energy.begin(), energy.end(), 0.0);
}

// Returns the rows of causes, the largest first, and behind them that of idle.
std::vector<std::pair<std::string_view, ByDrawer<double>>> rows_of(const Energy& energy) {
  std::vector<std::pair<std::string_view, ByDrawer<double>>> rows;
  for (std::size_t cause = 0; cause < cause_count; ++cause)
    if (sum_of(energy.causes[cause]) > 0)
      rows.emplace_back(cause_names[cause], energy.causes[cause]);
  std::ranges::stable_sort(
      rows, [](const auto& a, const auto& b) { return sum_of(a.second) > sum_of(b.second); });
  rows.emplace_back("idle", energy.idle);
  return rows;
}

RecordList by_cause(const Energy& energy) {
  return list_of(rows_of(energy), [&](const auto& row) {
    Records parts{{"cause", "where the energy goes", row.first},
                  {"energy_j", "energy", sum_of(row.second), Measure::joules},
                  {"share", "share", sum_of(row.second) / energy.total(), Measure::share}};
    for (std::size_t i = 0; i < drawer_names.size(); ++i)
      parts.emplace_back(fmt::format("{}_j", drawer_names[i]), drawer_titles[i], row.second[i],
                         Measure::joules);
    return parts;
  });
}

std::optional<Range> kwh(const Range& energy) {
  return Range{energy.low / joules_per_kwh, energy.high / joules_per_kwh};
}

}  // namespace

std::string kwh_text(Joules energy) {
  const double value = energy.value / joules_per_kwh;
  if (value >= 1e4) return fmt::format("{:.4g} MWh", value / 1000);
  return value >= 1000 ? fmt::format("{:.0f} kWh", value) : fmt::format("{:.3g} kWh", value);
}

std::string energy_text(const Prediction& p, const std::optional<Interval>& interval) {
  if (!p.energy) return "";
  const double total = p.energy->total();
  std::string text = fmt::format("energy       {} a step", to_text(Joules{total}));
  if (interval)
    text += fmt::format("  (likely {} to {})", to_text(Joules{interval->energy.low}),
                        to_text(Joules{interval->energy.high}));
  std::vector<std::string> parts;
  const ByDrawer<double> of = p.energy->by_drawer();
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i] > 0)
      parts.push_back(fmt::format("{} {}", drawer_titles[i], percent(of[i] / total, 0)));
  text += fmt::format(": {}", fmt::join(parts, ", "));
  if (p.job_energy.value > 0) text += fmt::format("; {} the whole job", kwh_text(p.job_energy));
  return text + "\n";
}

std::string energy_table(const Prediction& p) {
  if (!p.energy) return "";
  return "\n" + render(table_of(
                    by_cause(*p.energy).items,
                    {{"cause"}, {"energy_j"}, {"share"}, {"gpus_j"}, {"hosts_j"}, {"network_j"}}));
}

Record energy_record(const Prediction& p, const std::optional<Interval>& interval) {
  const auto parts = [&](const Energy& energy) -> Records {
    const bool job = p.job_energy.value > 0;
    const ByDrawer<double> of = energy.by_drawer();
    Records records{{"step_j", "of a step, by all GPUs, hosts and the network between them",
                     energy.total(), Measure::joules},
                    {"step_interval_j", "8 of 10 draws: of a step",
                     interval ? std::optional(interval->energy) : std::nullopt, Measure::joules}};
    for (std::size_t i = 0; i < of.size(); ++i)
      records.emplace_back(fmt::format("{}_j", drawer_names[i]), "of it", of[i], Measure::joules);
    append(records,
           Records{{"standing_w", "what all draw while they do nothing", energy.standing.value},
                   {"job_kwh", "the whole job, or what is left of it",
                    job ? std::optional(p.job_energy.value / joules_per_kwh) : std::nullopt},
                   {"job_interval_kwh", "8 of 10 draws: the whole job",
                    job && interval ? kwh(interval->job_energy) : std::nullopt},
                   {"by_cause", "they add up to the step", by_cause(energy)}});
    return records;
  };
  return parts_if("energy", "what it takes; null: a file does not say what its part draws",
                  p.energy, parts);
}

}  // namespace stepsim
