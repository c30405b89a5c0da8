#include "sim/engine/own/replay.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "sim/engine/own/sharing.hpp"
#include "sim/engine/ready_loop.hpp"

namespace stepsim {
namespace {

// Things that end within this share of the time are one moment: what ends together comes out of
// sums in different orders.
constexpr double one_moment = 1 + 1e-14;

class Engine {
 public:
  Engine(const Platform& platform, const OpGraph& graph, const Occupancy& occupancy)
      : platform_(platform), graph_(graph), sharing_(platform, graph) {
    for (const Device& device : platform.devices)
      devices_.push_back({.rates = occupancy.rates(device, device.speed)});
  }

  double now() const { return now_; }

  void set_timer(Seconds delay, OpId op) {
    push({now_ + delay.value, static_cast<std::uint32_t>(index(op)), timer});
  }

  void compute(Rank rank, Seconds seconds, OpId op) {
    const std::uint32_t slot = take_slot();
    activities_[slot].left = seconds.value;
    activities_[slot].op = op;
    devices_[rank].running.push_back(slot);
    note(rank);
  }

  void send(PatternId pattern, std::uint32_t round, std::uint32_t number, Bytes bytes, OpId op) {
    const Flow& flow = graph_.patterns()[index(pattern)].rounds[round].flows[number];
    const std::uint32_t slot = take_slot();
    activities_[slot].left = flow.wire * bytes.value;
    activities_[slot].op = op;
    activities_[slot].flow = &flow;
    sharing_.enter(slot, pattern, round, number);
  }

  void set_compute(Rank rank, std::size_t state) {
    devices_[rank].state = state;
    note(rank);
  }
  void slow_engines(Rank rank, bool slow) {
    const Device& device = platform_.devices[rank];
    for (const LinkId link : device.engines)
      sharing_.scale(link, slow ? device.collective_share : 1);
  }

  Trace run(ReadyLoop<Engine>& loop) {
    begin_changes();
    loop.begin();
    set_rates();
    while (!events_.empty() && !loop.done()) {
      const Event next = pop();
      if (is_old(next)) continue;
      if (platform_.lost_at && next.time > *platform_.lost_at) {
        now_ = *platform_.lost_at;
        break;
      }
      now_ = std::max(now_, next.time);
      end(next, loop);
      while (!events_.empty() && events_.front().time <= now_ * one_moment) {
        const Event other = pop();
        if (!is_old(other)) end(other, loop);
      }
      loop.settle();
      set_rates();
    }
    return loop.take();
  }

 private:
  // No activity ever has these versions, so they mark events of timers and of changes.
  static constexpr std::uint32_t timer = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t change = timer - 1;

  struct Event {
    double time = 0;
    std::uint32_t what = 0;     // a slot; of a timer the operation, of a change who changes
    std::uint32_t version = 0;  // of the slot when this was foreseen

    bool operator<(const Event& other) const { return time > other.time; }  // the next one on top
  };
  struct Activity {
    double left = 0;   // seconds, or bytes on the wire
    double rate = 0;   // per second
    double since = 0;  // when it had so much left
    OpId op{};
    const Flow* flow = nullptr;  // null: a computation
    std::uint32_t version = 0;
  };
  struct Running {
    std::vector<double> rates;  // [state]
    double share = 1;           // of its speed, by a change
    std::size_t state = 0;
    bool changed = false;
    std::vector<std::uint32_t> running{};  // slots; they share the device
  };

  void push(const Event& event) {
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end());
  }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }
  // Returns whether another rate came in between.
  bool is_old(const Event& event) const {
    return event.version < change && activities_[event.what].version != event.version;
  }

  std::uint32_t take_slot() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(activities_.size()));
      activities_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    activities_[slot].rate = 0;
    activities_[slot].since = now_;
    activities_[slot].flow = nullptr;
    return slot;
  }

  void note(Rank rank) {
    if (devices_[rank].changed) return;
    devices_[rank].changed = true;
    changed_.push_back(rank);
  }

  // Takes what changes at the start. Links have the first numbers, then devices.
  void begin_changes() {
    for (std::uint32_t i = 0; i < platform_.links.size() + platform_.devices.size(); ++i)
      if (!changes_of(i).empty()) take_change(i);
  }

  std::span<const Change> changes_of(std::uint32_t part) const {
    const std::size_t links = platform_.links.size();
    return part < links ? std::span(platform_.links[part].changes)
                        : std::span(platform_.devices[part - links].changes);
  }

  void take_change(std::uint32_t part) {
    const std::size_t links = platform_.links.size();
    const std::span<const Change> changes = changes_of(part);
    const double share = share_at(changes, now_);
    if (part < links) {
      sharing_.change(LinkId{part}, share);
    } else {
      devices_[part - links].share = share;
      note(static_cast<Rank>(part - links));
    }
    if (const auto next = next_change(changes, now_)) push({*next, part, change});
  }

  void end(const Event& event, ReadyLoop<Engine>& loop) {
    if (event.version == change) return take_change(event.what);
    if (event.version == timer) return loop.timer_ended(OpId{event.what});
    Activity& activity = activities_[event.what];
    const OpId op = activity.op;
    const Flow* flow = activity.flow;
    ++activity.version;
    free_.push_back(event.what);
    if (flow != nullptr) {
      sharing_.leave(event.what);
      loop.sent(op, *flow);
    } else {
      const Rank rank = graph_[op].rank;
      std::erase(devices_[rank].running, event.what);
      note(rank);
      loop.computed(op);
    }
  }

  void set_rates() {
    for (const Rank rank : changed_) {
      Running& device = devices_[rank];
      device.changed = false;
      const double each =
          device.share * device.rates[device.state] / static_cast<double>(device.running.size());
      for (const std::uint32_t slot : device.running) set_rate(slot, each);
    }
    changed_.clear();
    for (const std::uint32_t slot : sharing_.settle()) set_rate(slot, sharing_.rate(slot));
  }

  void set_rate(std::uint32_t slot, double rate) {
    Activity& activity = activities_[slot];
    if (activity.rate == rate) return;
    activity.left = std::max(0.0, activity.left - activity.rate * (now_ - activity.since));
    activity.since = now_;
    activity.rate = rate;
    ++activity.version;
    if (activity.version == change) activity.version = 0;
    push({now_ + activity.left / rate, slot, activity.version});
  }

  const Platform& platform_;
  const OpGraph& graph_;
  Sharing sharing_;
  double now_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<Activity> activities_;
  std::vector<std::uint32_t> free_;
  std::vector<Running> devices_;
  std::vector<Rank> changed_;
};

}  // namespace

Replayer::Replayer(const Platform& platform, const OpGraph& graph)
    : platform_(platform),
      graph_(graph),
      occupancy_(graph, platform.devices.size()),
      waits_(graph) {
  validate(platform);
  validate(graph, platform);
}

Trace Replayer::play(Watched watched, CauseSet free) const {
  Engine engine(platform_, graph_, occupancy_);
  ReadyLoop<Engine> loop(platform_, graph_, occupancy_, waits_, engine,
                         {.times = watched != Watched::makespan,
                          .links = watched == Watched::everything,
                          .free = free});
  return engine.run(loop);
}

Trace replay(const Platform& platform, const OpGraph& graph, Watched watched) {
  return Replayer(platform, graph).play(watched);
}

}  // namespace stepsim
