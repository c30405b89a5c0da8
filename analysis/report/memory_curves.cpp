#include "analysis/report/memory_curves.hpp"

#include <algorithm>
#include <optional>

namespace stepsim {
namespace {

struct CurveChange {
  double time;
  double bytes;
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
