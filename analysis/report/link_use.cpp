#include "analysis/report/link_use.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

struct LinkLoad {
  std::uint32_t link;
  double bytes;  // on the wire, per byte of the operation
};

std::vector<LinkLoad> loads_of(const Pattern& pattern, const Platform& platform) {
  std::map<std::uint32_t, double> sums;
  for (const Round& round : pattern.rounds)
    for (const Flow& flow : round.flows)
      for (const LinkId link : flow.path)
        sums[static_cast<std::uint32_t>(link)] += flow.wire * platform.links[index(link)].weight;
  std::vector<LinkLoad> loads;
  for (const auto& [link, bytes] : sums)
    if (bytes > 0) loads.push_back({link, bytes});
  return loads;
}

struct UseChange {
  double time;
  double share;  // of the capacity, more or less from now on
};

Curve curve_of(std::vector<UseChange>& changes) {
  std::ranges::stable_sort(changes, {}, &UseChange::time);
  Curve curve{{0}, {0}};
  double now = 0;
  std::size_t active = 0;
  for (const UseChange& change : changes) {
    if (change.share > 0)
      ++active;
    else
      --active;
    now = active == 0 ? 0 : now + change.share;  // exactly 0: sums of fractions leave crumbs
    if (change.time > curve.times.back()) {
      curve.times.push_back(change.time);
      curve.values.push_back(now);
    } else {
      curve.values.back() = now;
    }
  }
  return curve;
}

// Calls with begin, end and value of every stretch.
template <class Visit>
void for_stretches(const Curve& curve, double end, const Visit& visit) {
  for (std::size_t i = 0; i < curve.times.size(); ++i) {
    const double until = i + 1 < curve.times.size() ? curve.times[i + 1] : end;
    if (until > curve.times[i]) visit(curve.times[i], until, curve.values[i]);
  }
}

struct CurveChange {
  double time, bytes;
  NameId name;
  std::size_t kind = 0;  // place among the classes
};

std::vector<CurveChange> changes_of(const Run& run, Rank rank, Pool pool) {
  std::vector<CurveChange> changes;
  for (const MemoryEffect& effect : run.graph.memory()) {
    if (effect.rank != rank || effect.pool != pool) continue;
    const auto& times = effect.at_start ? run.trace.start : run.trace.finish;
    changes.push_back({times[index(effect.op)], effect.bytes, effect.tensor_class});
  }
  // At one instant memory is taken before it is given back, as everywhere.
  std::ranges::stable_sort(changes, [](const CurveChange& a, const CurveChange& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.bytes > 0 && b.bytes < 0;
  });
  return changes;
}

std::vector<std::string> number_classes(const Run& run, std::vector<CurveChange>& changes) {
  std::vector<std::string> classes;
  std::vector<std::optional<std::size_t>> kinds(run.graph.names().size());
  for (CurveChange& change : changes) {
    auto& kind = kinds[index(change.name)];
    if (!kind) {
      kind = classes.size();
      classes.push_back(run.graph.names()[index(change.name)]);
    }
    change.kind = *kind;
  }
  return classes;
}

// Returns which changes to show the level after: all of them, or the highest of each part of the
// step.
std::vector<bool> shown(const std::vector<CurveChange>& changes, double end,
                        std::size_t most_points) {
  std::vector<bool> result(changes.size(), changes.size() <= most_points);
  if (changes.size() <= most_points || end <= 0) return result;
  double now = 0, best = 0;
  std::size_t at = 0, part = 0;
  const double parts = static_cast<double>(most_points - 1);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now += changes[i].bytes;
    const auto here = static_cast<std::size_t>(changes[i].time / end * parts);
    if (i > 0 && here != part) result[at] = true;
    if (i == 0 || here != part || now > best) {
      best = now;
      at = i;
    }
    part = here;
  }
  result[at] = true;
  result.back() = true;  // what is left at the end
  return result;
}

}  // namespace

std::vector<LinkCurve> link_use(const Run& run, std::size_t most_links) {
  std::vector<std::vector<LinkLoad>> loads;
  for (const Pattern& pattern : run.graph.patterns())
    loads.push_back(loads_of(pattern, run.platform));
  std::vector<std::vector<UseChange>> changes(run.platform.links.size());
  std::vector<double> sums(run.platform.links.size(), 0);
  for (std::size_t i = 0; i < run.graph.size(); ++i) {
    const Op& op = run.graph.ops()[i];
    const double seconds = run.trace.finish[i] - run.trace.start[i];
    if (op.pattern == no_pattern || seconds <= 0) continue;
    for (const LinkLoad& load : loads[index(op.pattern)]) {
      const double full =
          load.bytes * op.bytes.value / run.platform.links[load.link].capacity.value;
      if (full <= 0) continue;
      sums[load.link] += full;
      changes[load.link].push_back({run.trace.start[i], full / seconds});
      changes[load.link].push_back({run.trace.finish[i], -full / seconds});
    }
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t link = 0; link < sums.size(); ++link)
    if (sums[link] > 0) order.push_back(link);
  std::ranges::stable_sort(order,
                           [&](std::uint32_t a, std::uint32_t b) { return sums[a] > sums[b]; });
  if (order.size() > most_links) order.resize(most_links);
  return mapped(order, [&](std::uint32_t link) -> LinkCurve {
    return {LinkId{link}, curve_of(changes[link]), sums[link] / run.trace.makespan.value};
  });
}

double area(const Curve& curve, double end) {
  double sum = 0;
  for_stretches(curve, end,
                [&](double from, double to, double value) { sum += (to - from) * value; });
  return sum;
}

Curve averaged(const Curve& curve, double end, std::size_t bins) {
  if (curve.times.size() <= bins || end <= 0) return curve;
  const double width = end / static_cast<double>(bins);
  Curve result;
  result.values.assign(bins, 0);
  for (std::size_t bin = 0; bin < bins; ++bin)
    result.times.push_back(static_cast<double>(bin) * width);
  for_stretches(curve, end, [&](double from, double to, double value) {
    if (value == 0) return;
    for (auto bin = std::min(static_cast<std::size_t>(from / width), bins - 1); bin < bins; ++bin) {
      const double left = std::max(from, result.times[bin]);
      const double right = std::min(to, bin + 1 < bins ? result.times[bin + 1] : end);
      if (right > left) result.values[bin] += value * (right - left) / width;
      if (right >= to) break;
    }
  });
  return result;
}

MemoryCurves memory_curves(const Run& run, Rank rank, Pool pool, std::size_t most_points) {
  MemoryCurves curves;
  std::vector<CurveChange> changes = changes_of(run, rank, pool);
  curves.classes = number_classes(run, changes);
  const std::vector<bool> points = shown(changes, run.trace.makespan.value, most_points);
  std::vector<double> now(curves.classes.size(), 0);
  curves.levels.resize(curves.classes.size());
  double total = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now[changes[i].kind] += changes[i].bytes;
    total += changes[i].bytes;
    if (!points[i]) continue;
    curves.times.push_back(changes[i].time);
    curves.totals.push_back(total);
    for (std::size_t kind = 0; kind < now.size(); ++kind) curves.levels[kind].push_back(now[kind]);
  }
  return curves;
}

}  // namespace stepsim
