#include "analysis/report/link_use.hpp"

#include <algorithm>
#include <map>

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

namespace {

// Calls with begin, end and value of every stretch.
template <class Visit>
void for_stretches(const Curve& curve, double end, const Visit& visit) {
  for (std::size_t i = 0; i < curve.times.size(); ++i) {
    const double until = i + 1 < curve.times.size() ? curve.times[i + 1] : end;
    if (until > curve.times[i]) visit(curve.times[i], until, curve.values[i]);
  }
}

}  // namespace

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

}  // namespace stepsim
