#include "analysis/memory_timeline.hpp"

#include <algorithm>
#include <functional>

namespace stepsim {
namespace {

struct Change {
  double time;
  const MemoryEffect* effect;
};

MemoryPeak highest(const OpGraph& graph, Rank rank,
                   const std::function<double(const MemoryEffect&)>& time_of) {
  std::vector<Change> changes;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == rank && effect.pool == Pool::device)
      changes.push_back({time_of(effect), &effect});
  // At one instant memory is taken before it is given back: the allocator cannot know better.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.effect->bytes > 0 && b.effect->bytes < 0;
  });
  std::vector<double> classes(graph.names().size(), 0), at_peak;
  MemoryPeak peak;
  double now = 0;
  for (const Change& change : changes) {
    now += change.effect->bytes;
    classes[index(change.effect->tensor_class)] += change.effect->bytes;
    if (now <= peak.bytes) continue;
    const Op& op = graph[change.effect->op];
    peak = {now, change.time, std::string(to_text(op.phase)), graph.names()[index(op.name)], {}};
    at_peak = classes;
  }
  for (std::size_t i = 0; i < at_peak.size(); ++i)
    if (at_peak[i] > 0) peak.classes.emplace_back(graph.names()[i], at_peak[i]);
  std::stable_sort(peak.classes.begin(), peak.classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return peak;
}

}  // namespace

MemoryPeak peak_memory(const OpGraph& graph, const Trace& trace, Rank rank) {
  return highest(graph, rank, [&](const MemoryEffect& effect) {
    return effect.at_start ? trace.start[index(effect.op)] : trace.finish[index(effect.op)];
  });
}

MemoryPeak peak_memory_in_order(const OpGraph& graph, Rank rank) {
  return highest(graph, rank,
                 [](const MemoryEffect& effect) { return static_cast<double>(index(effect.op)); });
}

}  // namespace stepsim
