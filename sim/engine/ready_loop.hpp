// Starts each operation when the last one that it waits for is done. What passes time is a
// TimeEngine.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/engine/occupancy.hpp"
#include "sim/ideal.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Counts what each link carries and how long it is busy.
class LinkMeter {
 public:
  explicit LinkMeter(std::span<const Link> links)
      : links_(links), use_(links.size()), active_(links.size(), 0), since_(links.size(), 0) {}

  // One flow of an operation of `bytes` starts at time `now`.
  void enter(const Flow& flow, Bytes bytes, double now) {
    for (const LinkId id : flow.path) {
      use_[index(id)].bytes += bytes.value * flow.share * links_[index(id)].weight;
      if (active_[index(id)]++ == 0) since_[index(id)] = now;
    }
  }
  void leave(const Flow& flow, double now) {
    for (const LinkId id : flow.path)
      if (--active_[index(id)] == 0) use_[index(id)].busy.value += now - since_[index(id)];
  }

  // Counts every link that a flow still crosses as busy up to now.
  void close(double now) {
    for (std::size_t i = 0; i < active_.size(); ++i)
      if (active_[i] > 0) use_[i].busy.value += now - since_[i];
  }

  std::vector<LinkUse> take() { return std::move(use_); }

 private:
  std::span<const Link> links_;
  std::vector<LinkUse> use_;
  std::vector<std::uint32_t> active_;  // flows on it now, each as often as it crosses
  std::vector<double> since_;          // when the first of them came
};

// A ReadyLoop starts work on an engine and hears from it when that work has ended. After everything
// that ends at one moment the engine calls settle() once. Nothing may depend on the order in which
// things end at the same moment.
template <class Engine>
concept TimeEngine =
    requires(Engine& engine, const Engine& seen, Rank rank, Seconds seconds, Bytes bytes, OpId op,
             PatternId pattern, std::uint32_t number, std::size_t state, bool slow) {
      // Returns the seconds since the start.
      { seen.now() } -> std::convertible_to<double>;
      // Calls timer_ended(op) after the delay.
      engine.set_timer(seconds, op);
      // Calls computed(op) when the device has worked so long at its full speed.
      engine.compute(rank, seconds, op);
      // Sends that flow of that round of the pattern, and calls sent(op, flow) at its end.
      engine.send(pattern, number, number, bytes, op);
      // Lets the device compute at that one of Occupancy::rates from now on.
      engine.set_compute(rank, state);
      // Takes a share of the links that drive the device's collectives for compute, or gives it
      // back.
      engine.slow_engines(rank, slow);
    };

// An engine with these functions is told of every operation when it begins and when it ends, such
// as one that meters power.
template <class Engine>
concept HearsOperations = requires(Engine& engine, const Op& op) {
  engine.begins(op);
  engine.ends(op);
};

template <class Engine>
class ReadyLoop {
 public:
  struct Wanted {
    // These say what the trace has beside the makespan: `times`, when operations ran; `links`, what
    // links carried and when operations were ready.
    bool times = true, links = true;
    CauseSet free{};  // operations of these causes are instants
  };

  ReadyLoop(const Platform& platform, const OpGraph& graph, Occupancy occupancy, const Waits& waits,
            Engine& engine, Wanted wanted = {})
      : platform_(platform),
        graph_(graph),
        engine_(engine),
        occupancy_(std::move(occupancy)),
        successors_(waits.successors),
        waiting_(waits.counts),
        rounds_done_(graph.size(), 0),
        flows_left_(graph.size(), 0),
        neighbours_(graph.neighbours().size()),
        load_(platform.devices.size()),
        wanted_(wanted),
        slow_starts_(std::ranges::any_of(
            platform.links, [](const Link& link) { return adds_latency(link.changes); })),
        meter_(platform.links) {
    // This is checked here and not in the class's head: engines name their loop before they are
    // complete.
    static_assert(TimeEngine<Engine>);
    if (!wanted.times) return;
    trace_.start.assign(graph.size(), never);
    trace_.finish.assign(graph.size(), never);
  }

  void begin() {
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (waiting_[i] == 0) released_.push_back(OpId{static_cast<std::uint32_t>(i)});
    settle();
    for (std::uint32_t i = 0; i < graph_.neighbours().size(); ++i)
      engine_.set_timer({graph_.neighbours()[i].at}, neighbour_id(i));
  }

  // Returns whether all operations have ended: nothing that the engine does from now on changes the
  // trace.
  bool done() const { return finished_ == graph_.size(); }

  void timer_ended(OpId id) {
    if (is_neighbour(id)) return begin_neighbour(id);
    if (graph_[id].pattern == no_pattern) return finish(id);
    start_flows(id, rounds_done_[index(id)] - 1);
  }

  void computed(OpId id) {
    change(graph_[id].rank).computations -= 1;
    finish(id);
  }

  void sent(OpId id, const Flow& flow) {
    if (done()) return;  // a neighbour's, which nobody waits for
    if (wanted_.links) meter_.leave(flow, engine_.now());
    trace_.encounters += flows_under_way_--;
    if (is_neighbour(id)) return end_neighbour(id);
    if (--flows_left_[index(id)] == 0) next_round(id);
  }

  // Starts whatever became ready, in the order of release; finishing a join releases more, hence a
  // list instead of recursion. Rates of devices are set once, after all that happens at an instant.
  void settle() {
    while (!released_.empty()) {
      batch_.swap(released_);
      for (const OpId op : batch_) start(op);
      batch_.clear();
    }
    for (const Rank rank : changed_) apply_load(rank);
    changed_.clear();
  }

  Trace take() {
    if (!done() && !platform_.lost_at)
      throw std::logic_error(
          fmt::format("{} operations never finished", graph_.size() - finished_));
    if (!done()) cut(*platform_.lost_at);
    if (wanted_.links) {
      trace_.ready = first_arrivals(graph_, trace_);
      meter_.close(trace_.makespan.value);
      trace_.links = meter_.take();
    }
    return std::move(trace_);
  }

 private:
  static constexpr double never = -1;  // in columns of times

  struct NeighbourState {
    std::uint32_t flows = 0;  // under way
    bool due = false;         // the next ones begin when these have ended
  };
  struct Load {
    std::uint32_t computations = 0;
    std::size_t compute_state = 0;
    bool engines_slow = false, changed = false;
  };

  void start(OpId id) {
    const Op& op = graph_[id];
    if (wanted_.times) trace_.start[index(id)] = engine_.now();
    if constexpr (HearsOperations<Engine>) engine_.begins(op);
    if (wanted_.free.has(op.cause)) return finish(id);
    switch (op.kind) {
      case OpKind::join:
        finish(id);
        break;
      case OpKind::host:
      case OpKind::delay:
        if (op.seconds.value <= 0) return finish(id);
        set_timer(op.seconds, id);
        break;
      case OpKind::compute:
        compute(id, op);
        break;
      case OpKind::collective:
      case OpKind::transfer:
      case OpKind::cpu:
        occupy(graph_.patterns()[index(op.pattern)], 1);
        next_round(id);
        break;
    }
  }

  void compute(OpId id, const Op& op) {
    if (op.seconds.value <= 0) return finish(id);
    change(op.rank).computations += 1;
    ++trace_.activities;
    engine_.compute(op.rank, op.seconds, id);
  }

  void next_round(OpId id) {
    const Pattern& pattern = graph_.patterns()[index(graph_[id].pattern)];
    const std::uint32_t round = rounds_done_[index(id)];
    if (round == pattern.rounds.size()) {
      occupy(pattern, -1);
      return finish(id);
    }
    rounds_done_[index(id)] = round + 1;
    const Seconds latency = pattern.rounds[round].latency + more_latency(pattern.rounds[round]);
    if (latency.value <= 0) return start_flows(id, round);
    set_timer(latency, id);
  }

  void start_flows(OpId id, std::uint32_t round) {
    const Op& op = graph_[id];
    const std::vector<Flow>& flows = graph_.patterns()[index(op.pattern)].rounds[round].flows;
    std::uint32_t started = 0;
    for (std::uint32_t number = 0; number < flows.size(); ++number) {
      const Flow& flow = flows[number];
      if (flow.wire * op.bytes.value <= 0) continue;
      ++started;
      if (wanted_.links) meter_.enter(flow, op.bytes, engine_.now());
      ++trace_.activities;
      ++flows_under_way_;
      engine_.send(op.pattern, round, number, op.bytes, id);
    }
    flows_left_[index(id)] = started;
    if (started == 0) next_round(id);
  }

  // Numbers a neighbour's traffic behind the operations, so that an engine tells both apart by the
  // id.
  OpId neighbour_id(std::uint32_t number) const {
    return OpId{static_cast<std::uint32_t>(graph_.size()) + number};
  }
  bool is_neighbour(OpId id) const { return index(id) >= graph_.size(); }

  void begin_neighbour(OpId id) {
    if (done()) return;
    const Neighbour& neighbour = graph_.neighbours()[index(id) - graph_.size()];
    if (neighbour.period > 0) engine_.set_timer({neighbour.period}, id);
    NeighbourState& state = neighbours_[index(id) - graph_.size()];
    state.due = state.flows > 0;
    if (!state.due) send_neighbour(id, neighbour, state);
  }

  void end_neighbour(OpId id) {
    NeighbourState& state = neighbours_[index(id) - graph_.size()];
    if (--state.flows > 0 || !state.due) return;
    state.due = false;
    send_neighbour(id, graph_.neighbours()[index(id) - graph_.size()], state);
  }

  void send_neighbour(OpId id, const Neighbour& neighbour, NeighbourState& state) {
    const auto& flows = graph_.patterns()[index(neighbour.pattern)].rounds.front().flows;
    for (std::uint32_t number = 0; number < flows.size(); ++number) {
      if (flows[number].wire * neighbour.bytes.value <= 0) continue;
      ++state.flows;
      if (wanted_.links) meter_.enter(flows[number], neighbour.bytes, engine_.now());
      ++trace_.activities;
      ++flows_under_way_;
      engine_.send(neighbour.pattern, 0, number, neighbour.bytes, id);
    }
  }

  // Returns the largest latency that the changes of a flow's links add to the round now.
  Seconds more_latency(const Round& round) const {
    double most = 0;
    if (slow_starts_)
      for (const Flow& flow : round.flows) {
        double sum = 0;
        for (const LinkId link : flow.path)
          sum += latency_at(platform_.links[index(link)].changes, engine_.now());
        most = std::max(most, sum);
      }
    return {most};
  }

  // Ends at `lost_at` whatever has not ended by then, because the program is lost.
  void cut(double lost_at) {
    trace_.makespan.value = lost_at;
    for (std::size_t i = 0; i < trace_.finish.size(); ++i) {
      if (trace_.start[i] == never) trace_.start[i] = lost_at;
      if (trace_.finish[i] == never) trace_.finish[i] = lost_at;
    }
  }

  void set_timer(Seconds delay, OpId id) {
    ++trace_.activities;
    engine_.set_timer(delay, id);
  }

  void finish(OpId id) {
    const double now = engine_.now();
    if (wanted_.times) trace_.finish[index(id)] = now;
    if constexpr (HearsOperations<Engine>) engine_.ends(graph_[id]);
    trace_.makespan.value = std::max(trace_.makespan.value, now);
    ++finished_;
    for (const OpId next : successors_.of(id))
      if (--waiting_[index(next)] == 0) released_.push_back(next);
  }

  Load& change(Rank rank) {
    Load& load = load_[rank];
    if (!load.changed) changed_.push_back(rank);
    load.changed = true;
    return load;
  }

  void occupy(const Pattern& pattern, int by) {
    if (pattern.occupancy <= 0) return;
    for (const Rank rank : pattern.members) {
      change(rank);
      occupancy_.change(rank, pattern.occupancy, by);
    }
  }

  // Compute and collectives on one device slow each other for as long as both run.
  void apply_load(Rank rank) {
    Load& load = load_[rank];
    load.changed = false;
    const std::size_t state = occupancy_.state(rank);
    if (state != load.compute_state) engine_.set_compute(rank, state);
    load.compute_state = state;
    const bool slow_engines =
        state > 0 && load.computations > 0 && platform_.devices[rank].collective_share < 1;
    if (slow_engines != load.engines_slow) engine_.slow_engines(rank, slow_engines);
    load.engines_slow = slow_engines;
  }

  const Platform& platform_;
  const OpGraph& graph_;
  Engine& engine_;
  Occupancy occupancy_;
  const Successors& successors_;
  Trace trace_;
  std::size_t finished_ = 0;
  std::uint64_t flows_under_way_ = 0;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> rounds_done_, flows_left_;
  std::vector<NeighbourState> neighbours_;
  std::vector<OpId> released_, batch_;
  std::vector<Load> load_;
  std::vector<Rank> changed_;
  Wanted wanted_;
  bool slow_starts_;  // some change of a link adds to latencies
  LinkMeter meter_;
};

}  // namespace stepsim
