#include "analysis/memory_timeline.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace stepsim {
namespace {

constexpr std::array device_pool{Pool::device};

// At one instant what an operation gives back is there for the next; its own memory it takes
// before.
Timeline changes_of(const OpGraph& graph, Rank rank,
                    const std::function<double(const MemoryEffect&)>& time_of) {
  struct Timed {
    double time;
    const MemoryEffect* effect;
  };
  std::vector<Timed> effects;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == rank) effects.push_back({time_of(effect), &effect});
  std::stable_sort(effects.begin(), effects.end(), [](const Timed& a, const Timed& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.effect->op != b.effect->op) return a.effect->op < b.effect->op;
    return a.effect->bytes > 0 && b.effect->bytes < 0;
  });
  Timeline timeline;
  timeline.reserve(effects.size());
  for (const auto& [time, effect] : effects) {
    const Op& op = graph[effect->op];
    timeline.push_back({time, effect->pool, to_text(op.phase), graph.names()[index(op.name)],
                        graph.names()[index(effect->tensor_class)], effect->bytes});
  }
  return timeline;
}

// Few words, each looked up many times in a row.
class Sums {
 public:
  struct Sum {
    std::string_view word;
    double now = 0, highest = 0;
  };

  Sum& of(std::string_view word) {
    if (last_ < sums_.size() && sums_[last_].word == word) return sums_[last_];
    for (last_ = 0; last_ < sums_.size(); ++last_)
      if (sums_[last_].word == word) return sums_[last_];
    return sums_.emplace_back(Sum{word, 0, 0});
  }
  const std::vector<Sum>& all() const { return sums_; }

 private:
  std::vector<Sum> sums_;
  std::size_t last_ = 0;
};

}  // namespace

Timeline timeline_of(const OpGraph& graph, const Trace& trace, Rank rank) {
  return changes_of(graph, rank, [&](const MemoryEffect& effect) {
    return effect.at_start ? trace.start[index(effect.op)] : trace.finish[index(effect.op)];
  });
}

Timeline timeline_in_order(const OpGraph& graph, Rank rank) {
  return changes_of(graph, rank, [](const MemoryEffect& effect) {
    return static_cast<double>(index(effect.op));
  });
}

double MemoryReading::highest_of(std::string_view tensor_class) const {
  for (const auto& [name, bytes] : highest)
    if (name == tensor_class) return bytes;
  return 0;
}

MemoryReading read_timeline(std::span<const MemoryChange> timeline, std::span<const Pool> pools,
                            double limit) {
  MemoryReading reading;
  Sums classes, moments;
  std::vector<Sums::Sum> at_peak;
  const MemoryChange* highest = nullptr;
  double now = 0;
  for (const MemoryChange& change : timeline) {
    if (std::find(pools.begin(), pools.end(), change.pool) == pools.end()) continue;
    if (change.bytes > 0 && now + change.bytes > limit && !reading.failed)
      reading.failed = {std::string(change.moment), std::string(change.at),
                        std::string(change.tensor_class), change.bytes, now};
    now += change.bytes;
    Sums::Sum& sum = classes.of(change.tensor_class);
    sum.highest = std::max(sum.highest, sum.now += change.bytes);
    Sums::Sum& moment = moments.of(change.moment);
    moment.highest = std::max(moment.highest, now);
    if (now <= reading.peak.bytes) continue;
    reading.peak.bytes = now;
    highest = &change;
    at_peak = classes.all();
  }
  if (highest != nullptr) {
    reading.peak.time = highest->time;
    reading.peak.phase = highest->moment;
    reading.peak.name = highest->at;
  }
  for (const Sums::Sum& sum : at_peak)
    if (sum.now > 0) reading.peak.classes.emplace_back(sum.word, sum.now);
  std::stable_sort(reading.peak.classes.begin(), reading.peak.classes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const Sums::Sum& sum : classes.all()) reading.highest.emplace_back(sum.word, sum.highest);
  for (const Sums::Sum& sum : moments.all()) reading.moments.emplace_back(sum.word, sum.highest);
  return reading;
}

MemoryPeak peak_memory(const OpGraph& graph, const Trace& trace, Rank rank) {
  return read_timeline(timeline_of(graph, trace, rank), device_pool,
                       std::numeric_limits<double>::infinity())
      .peak;
}

MemoryPeak peak_memory_in_order(const OpGraph& graph, Rank rank) {
  return read_timeline(timeline_in_order(graph, rank), device_pool,
                       std::numeric_limits<double>::infinity())
      .peak;
}

}  // namespace stepsim
