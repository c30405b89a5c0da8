#include "analysis/studies/sweep/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view size_key = "cluster.nodes";
constexpr double worth_it = 0.5;  // of what a growth could bring; with less it is past the knee

double figure(const SweepRow& row, std::string_view metric) {
  return row.outcome.of(metric).value_or(0);
}

double speed(const SweepRow& row) {
  return figure(row, "tokens_per_second");
}

// Returns, row by row, money for tokens where the sweep has prices, else GPU time.
std::vector<double> token_costs(const SweepTable& table) {
  const bool priced = std::ranges::any_of(
      table.rows, [](const SweepRow& row) { return row.outcome.of("price").has_value(); });
  return mapped(table.rows, [&](const SweepRow& row) {
    return priced ? row.outcome.of("cost_per_million_tokens").value_or(INFINITY)
                  : figure(row, "gpu_time_per_million_tokens");
  });
}

// Returns the keys that move together with the number of nodes, as a batch does that is kept the
// same: they belong to the machine's size, and do not set points apart.
std::vector<bool> size_keys(const SweepTable& table, std::size_t nodes) {
  std::vector<bool> moves(table.keys.size());
  for (std::size_t k = 0; k < table.keys.size(); ++k) {
    std::map<std::string, std::string> by_size;
    std::set<std::string> values;
    bool one_each = true;
    for (const SweepRow& row : table.rows) {
      const auto known = by_size.emplace(row.values[nodes], row.values[k]).first;
      one_each = one_each && known->second == row.values[k];
      values.insert(row.values[k]);
    }
    moves[k] = k == nodes || (one_each && values.size() > 1);
  }
  return moves;
}

std::string other_settings(const SweepTable& table, const SweepRow& row,
                           const std::vector<bool>& of_size) {
  std::string name;
  for (std::size_t k = 0; k < table.keys.size(); ++k) {
    if (of_size[k] || row.values[k].empty()) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", table.keys[k], row.values[k]);
  }
  return name;
}

// Asks all larger machines, not the next one: packing makes single growths uneven.
std::optional<std::size_t> knee_of(const SweepTable& table,
                                   const std::vector<ScalingPoint>& points) {
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const auto worth_growing_to = [&](const ScalingPoint& larger) {
      if (larger.gpus <= points[i].gpus) return false;
      const double faster = speed(table.rows[larger.row]) / speed(table.rows[points[i].row]) - 1;
      return faster >= worth_it * (larger.gpus / points[i].gpus - 1);
    };
    if (std::ranges::none_of(points, worth_growing_to)) return i;
  }
  return std::nullopt;
}

Scaling scaling_of(const SweepTable& table, std::string name, std::vector<std::size_t> rows) {
  const auto gpus = [&](std::size_t row) { return figure(table.rows[row], "gpus"); };
  std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) { return gpus(a) < gpus(b); });
  Scaling scaling{std::move(name), {}, true, {}};
  const double least = gpus(rows.front()), start = speed(table.rows[rows.front()]);
  const double work = figure(table.rows[rows.front()], "tokens_per_step");
  double gpus_before = least, speed_before = start, work_now = work;
  for (const std::size_t row : rows) {
    ScalingPoint point{row, gpus(row)};
    const double now = speed(table.rows[row]);
    point.efficiency = (now / point.gpus) / (start / least);
    if (point.gpus > gpus_before)
      point.marginal = (now / speed_before - 1) / (point.gpus / gpus_before - 1);
    work_now = figure(table.rows[row], "tokens_per_step");
    scaling.points.push_back(point);
    gpus_before = point.gpus;
    speed_before = now;
  }
  scaling.knee = knee_of(table, scaling.points);
  // The batch is fixed if it grew nearer to none than to all of the machine's growth: packing
  // changes a batch by a little.
  scaling.fixed_batch = std::log(work_now / work) < 0.5 * std::log(gpus_before / least);
  return scaling;
}

// Returns how each series of points scales; one of a single machine size says nothing about growth.
std::vector<Scaling> scalings_of(const SweepTable& table) {
  const auto nodes = std::ranges::find(table.keys, size_key);
  if (nodes == table.keys.end()) return {};
  const auto of_size = size_keys(table, static_cast<std::size_t>(nodes - table.keys.begin()));
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (!table.rows[i].outcome.feasible) continue;
    const std::string name = other_settings(table, table.rows[i], of_size);
    if (!groups.contains(name)) order.push_back(name);
    groups[name].push_back(i);
  }
  std::vector<Scaling> all;
  for (const std::string& name : order)
    if (groups[name].size() > 1) all.push_back(scaling_of(table, name, groups[name]));
  return all;
}

// Equal in every figure, and there are several.
bool are_alike(const SweepTable& table, const std::vector<std::size_t>& rows) {
  return rows.size() > 1 && std::ranges::all_of(rows, [&](std::size_t row) {
           return std::ranges::all_of(all_metrics(), [&](const NamedMetric& metric) {
             return table.rows[row].outcome.of(metric.name) ==
                    table.rows[rows.front()].outcome.of(metric.name);
           });
         });
}

}  // namespace

SweepReport report_of(const SweepTable& table) {
  SweepReport report;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (table.rows[i].outcome.feasible) rows.push_back(i);
  report.feasible = rows.size();
  if (rows.empty()) return report;
  const auto at = [&](std::size_t i) -> const SweepRow& { return table.rows[i]; };
  // Each of these is the first of equals, in the order of the sweep.
  const auto first = [&](const auto& better) { return *std::ranges::min_element(rows, better); };
  report.fastest = first([&](auto a, auto b) { return speed(at(a)) > speed(at(b)); });
  const std::vector<double> costs = token_costs(table);
  report.cheapest = first([&](auto a, auto b) { return costs[a] < costs[b]; });
  report.smallest =
      first([&](auto a, auto b) { return figure(at(a), "gpus") < figure(at(b), "gpus"); });
  std::ranges::stable_sort(rows, [&](auto a, auto b) {
    return speed(at(a)) != speed(at(b)) ? speed(at(a)) > speed(at(b)) : costs[a] < costs[b];
  });
  double least = INFINITY;
  for (const std::size_t row : rows) {
    if (costs[row] >= least) continue;
    least = costs[row];
    report.front.push_back(row);
  }
  report.alike = are_alike(table, rows);
  report.scalings = scalings_of(table);
  return report;
}

}  // namespace stepsim
