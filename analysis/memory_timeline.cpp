#include "analysis/memory_timeline.hpp"

#include <algorithm>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

MemoryChange change_of(const OpGraph& graph, const MemoryEffect& effect, double time) {
  const OpLabel label = graph.label(effect.op);
  return {time,
          effect.pool,
          to_text(label.phase),
          graph.names()[index(label.name)],
          graph.names()[index(effect.tensor_class)],
          effect.bytes,
          effect.op};
}

// Sums go by few words, each looked up many times in a row.
class Sums {
 public:
  struct Sum {
    std::string_view word;
    double now = 0, highest = 0;
  };

  Sum& of(std::string_view word) {
    if (last_ < sums_.size() && same(sums_[last_].word, word)) return sums_[last_];
    for (last_ = 0; last_ < sums_.size(); ++last_)
      if (same(sums_[last_].word, word)) return sums_[last_];
    return sums_.emplace_back(Sum{word, 0, 0});
  }
  const std::vector<Sum>& all() const { return sums_; }

 private:
  // Words of one graph stand where they stand.
  static bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && (a.data() == b.data() || a == b);
  }

  std::vector<Sum> sums_;
  std::size_t last_ = 0;
};

}  // namespace

// At one instant what an operation gives back is there for the next; its own memory it takes
// before.
Timeline timeline_of(const OpGraph& graph, const Trace& trace, Rank rank) {
  struct Timed {
    double time;
    const MemoryEffect* effect;
  };
  std::vector<Timed> effects;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == rank)
      effects.push_back(
          {effect.at_start ? trace.start[index(effect.op)] : trace.finish[index(effect.op)],
           &effect});
  std::ranges::stable_sort(effects, [](const Timed& a, const Timed& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.effect->op != b.effect->op) return a.effect->op < b.effect->op;
    return a.effect->bytes > 0 && b.effect->bytes < 0;
  });
  Timeline timeline;
  timeline.reserve(effects.size());
  for (const auto& [time, effect] : effects)
    timeline.push_back(change_of(graph, *effect, trace.repeat.whole(time)));
  return timeline;
}

// Effects are counted, not compared: an operation has a place for what it takes, and one behind it
// for what it gives back.
Timeline timeline_in_order(const OpGraph& graph, Rank rank) {
  const auto place = [](const MemoryEffect& effect) {
    return 2 * index(effect.op) + (effect.bytes < 0 ? 1 : 0);
  };
  std::vector<std::uint32_t> next(2 * graph.size() + 1);
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == rank) ++next[place(effect) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<std::uint32_t> order(next.back());
  for (std::size_t i = 0; i < graph.memory().size(); ++i)
    if (const MemoryEffect& effect = graph.memory()[i]; effect.rank == rank)
      order[next[place(effect)]++] = static_cast<std::uint32_t>(i);
  Timeline timeline;
  timeline.reserve(order.size());
  for (const std::uint32_t i : order) {
    const MemoryEffect& effect = graph.memory()[i];
    timeline.push_back(change_of(graph, effect, static_cast<double>(index(effect.op))));
  }
  return timeline;
}

double MemoryReading::highest_of(std::string_view tensor_class) const {
  for (const auto& [name, bytes] : highest)
    if (name == tensor_class) return bytes;
  return 0;
}

MemoryReading read_timelines(std::initializer_list<std::span<const MemoryChange>> timelines,
                             std::span<const Pool> pools, double limit, double times) {
  MemoryReading reading;
  Sums classes, moments;
  std::vector<Sums::Sum> at_peak;
  const MemoryChange* highest = nullptr;
  double now = 0;
  bool rising = false;  // the last change was the highest so far, and its classes are not kept yet
  const auto keep = [&] {
    if (std::exchange(rising, false)) at_peak = classes.all();
  };
  for (const std::span<const MemoryChange> timeline : timelines)
    for (const MemoryChange& change : timeline) {
      if (!holds(pools, change.pool)) continue;
      const double bytes = times * change.bytes;
      if (bytes > 0 && now + bytes > limit && !reading.failed)
        reading.failed = {std::string(change.moment), std::string(change.at),
                          std::string(change.tensor_class), bytes, now};
      if (bytes <= 0) keep();
      now += bytes;
      Sums::Sum& sum = classes.of(change.tensor_class);
      sum.highest = std::max(sum.highest, sum.now += bytes);
      Sums::Sum& moment = moments.of(change.moment);
      moment.highest = std::max(moment.highest, now);
      if (now <= reading.peak.bytes) continue;
      reading.peak.bytes = now;
      highest = &change;
      rising = true;
    }
  keep();
  if (highest != nullptr) {
    reading.peak.time = highest->time;
    reading.peak.phase = highest->moment;
    reading.peak.name = highest->at;
  }
  for (const Sums::Sum& sum : at_peak)
    if (sum.now > 0) reading.peak.classes.emplace_back(sum.word, sum.now);
  std::ranges::stable_sort(reading.peak.classes,
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
