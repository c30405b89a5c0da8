// The only user of SimGrid. Its habits that shaped this file, each pinned by a test:
//  - handing over the whole graph is quadratic, so operations enter the engine when they are ready;
//  - an activity whose last handle is dropped crashes, so slots hold handles until completion;
//  - a missing route aborts the process, so program and platform are validated first;
//  - a payload is a whole number, so bytes are counted in fractions of a byte;
//  - a flow between hosts takes no rate limit, so a capped route ends in a pipe of that width;
//  - links share in inverse proportion to route latency, so links have none and latency is a timer.
#include "sim/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/link_meter.hpp"
#include "sim/occupancy.hpp"
#include "sim/series.hpp"

namespace stepsim {
namespace {

namespace sg4 = simgrid::s4u;

// SimGrid treats remaining work below 1e-10 units as done. In picoseconds that is nothing; in
// seconds it would be a visible part of a short kernel.
constexpr double work_per_second = 1e12;

// SimGrid takes whole bytes, and a third of a buffer is none: flows and links are scaled by a power
// of two that leaves the largest flow of the program within 62 bits.
double units_per_byte(const OpGraph& graph) {
  return std::ldexp(1.0, 61 - std::ilogb(std::max(1.0, largest_flow(graph).value)));
}

// Flows with the same links and the same cap share a route. As a hash and as an equality.
struct SameRoute {
  std::size_t operator()(const Flow* flow) const {
    std::size_t hash = std::bit_cast<std::uint64_t>(flow->rate_cap);
    for (const LinkId link : flow->path) hash = hash * 0x9E3779B97F4A7C15ULL + index(link) + 1;
    return hash;
  }
  bool operator()(const Flow* a, const Flow* b) const {
    return a->path == b->path && a->rate_cap == b->rate_cap;
  }
};

void start_engine() {
  static bool started = false;
  if (started)
    throw std::logic_error("replay() runs once per process: SimGrid keeps its clock for good");
  started = true;
}

std::vector<std::string> engine_arguments() {
  return {
      "stepsim",
      "--log=root.thresh:critical",
      "--cfg=network/model:CM02",      // latency + bytes / bandwidth, no TCP corrections (+18 %)
      "--cfg=network/TCP-gamma:0",     // no window: a flow is never capped by latency
      "--cfg=network/crosstraffic:0",  // directions are links of their own
      "--cfg=surf/precision:1e-12",    // default 1e-9 would end a short kernel early
      "--cfg=network/weight-S:0",      // sharing does not depend on link bandwidth
      "--cfg=debug/verbose-exit:no",
  };
}

// Hosts and links in SimGrid for the devices and paths of a program.
class Machine {
 public:
  Machine(const Platform& platform, const OpGraph& graph, const Occupancy& occupancy)
      : platform_(platform), units_(units_per_byte(graph)), series_(platform.links, graph) {
    zone_ = sg4::create_full_zone("cluster");
    for (const Device& device : platform.devices) {
      sg4::Host* host = zone_->create_host(fmt::format("d{}", devices_.size()),
                                           occupancy.rates(device, device.speed * work_per_second));
      devices_.push_back(host->seal());
    }
    links_.resize(platform.links.size(), nullptr);
    collect_routes(graph);
    lay_routes();
    zone_->seal();
  }

  struct Ends {
    sg4::Host* from;
    sg4::Host* to;
  };
  Ends ends(const Flow& flow) const {
    const std::size_t id = route_ids_.at(&flow);
    return {sources_[id / columns_], targets_[id % columns_]};
  }
  double units() const { return units_; }
  sg4::Host* device(Rank rank) const { return devices_[rank]; }

  void set_compute(Rank rank, std::size_t state) { devices_[rank]->set_pstate(state); }
  void slow_engines(Rank rank, bool slow) {
    const Device& device = platform_.devices[rank];
    for (const LinkId id : device.engines) {
      if (!series_.used(id)) continue;
      const double before = series_.width(id);
      series_.scale(id, slow ? device.collective_share : 1);
      if (const double now = series_.width(id); now != before)
        links_[index(series_.first(id))]->set_bandwidth(units_ * now);
    }
  }

 private:
  void collect_routes(const OpGraph& graph) {
    for (const Pattern& pattern : graph.patterns())
      for (const Round& round : pattern.rounds)
        for (const Flow& flow : round.flows)
          if (route_ids_.try_emplace(&flow, routes_.size()).second) routes_.push_back(&flow);
  }

  // A flow needs two hosts with a route. R different routes become the cells of a square: about
  // 2 sqrt(R) hosts instead of 2 R, and a route table of 4 R entries instead of 4 R^2.
  void lay_routes() {
    columns_ = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(routes_.size())))));
    for (std::size_t i = 0; i < columns_ && !routes_.empty(); ++i) {
      sources_.push_back(zone_->create_host(fmt::format("s{}", i), 1.0));
      targets_.push_back(zone_->create_host(fmt::format("t{}", i), 1.0));
    }
    std::vector<sg4::LinkInRoute> route;
    for (std::size_t id = 0; id < routes_.size(); ++id) {
      route.clear();
      for (const LinkId link : routes_[id]->path)
        if (series_.first(link) == link) route.emplace_back(open(link));
      if (std::isfinite(routes_[id]->rate_cap)) route.emplace_back(pipe(id));
      zone_->add_route(sources_[id / columns_]->get_netpoint(),
                       targets_[id % columns_]->get_netpoint(), nullptr, nullptr, route, false);
    }
  }

  sg4::Link* open(LinkId id) {
    sg4::Link*& link = links_[index(id)];
    if (link == nullptr)
      link = zone_->create_link(fmt::format("l{}", index(id)), units_ * series_.width(id))
                 ->set_latency(0)
                 ->seal();
    return link;
  }

  // Each flow on it gets its whole width.
  sg4::Link* pipe(std::size_t route) {
    return zone_->create_link(fmt::format("c{}", route), units_ * routes_[route]->rate_cap)
        ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
        ->set_latency(0)
        ->seal();
  }

  const Platform& platform_;
  const double units_;
  Series series_;
  sg4::NetZone* zone_ = nullptr;
  std::vector<sg4::Host*> devices_, sources_, targets_;
  std::vector<sg4::Link*> links_;
  std::unordered_map<const Flow*, std::size_t, SameRoute, SameRoute> route_ids_;  // only looked up
  std::vector<const Flow*> routes_;
  std::size_t columns_ = 1;
};

class ReadyLoop {
 public:
  ReadyLoop(const Platform& platform, const OpGraph& graph, Occupancy occupancy, Machine& machine)
      : platform_(platform),
        graph_(graph),
        machine_(machine),
        occupancy_(std::move(occupancy)),
        successors_(graph),
        rounds_done_(graph.size(), 0),
        flows_left_(graph.size(), 0),
        load_(platform.devices.size()),
        meter_(platform.links) {
    const std::size_t n = graph.size();
    trace_.start.assign(n, 0);
    trace_.finish.assign(n, -1);
    waiting_.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      waiting_[i] = static_cast<std::uint32_t>(
          graph.predecessors(OpId{static_cast<std::uint32_t>(i)}).size());
  }

  Trace run(sg4::Engine& engine) {
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) { completed(activity); });
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (waiting_[i] == 0) released_.push_back(OpId{static_cast<std::uint32_t>(i)});
    settle();
    engine.run();
    conclude();
    return std::move(trace_);
  }

 private:
  struct Slot {
    sg4::ActivityPtr activity;  // the handle must outlive the activity
    OpId op{};
    const Flow* flow = nullptr;  // null: a computation
  };
  struct Load {
    std::uint32_t computations = 0;
    std::size_t compute_state = 0;
    bool engines_slow = false;
    bool changed = false;
  };

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

  void start(OpId id) {
    const Op& op = graph_[id];
    trace_.start[index(id)] = now();
    switch (op.kind) {
      case OpKind::join:
        finish(id);
        break;
      case OpKind::host:
      case OpKind::delay:
        after(op.seconds, [this, id] { finish(id); });
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
    sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_flops_amount(op.seconds.value * work_per_second);
    exec->set_host(machine_.device(op.rank));
    launch(exec, id, nullptr);
  }

  void next_round(OpId id) {
    const Pattern& pattern = graph_.patterns()[index(graph_[id].pattern)];
    const std::uint32_t round = rounds_done_[index(id)];
    if (round == pattern.rounds.size()) {
      occupy(pattern, -1);
      return finish(id);
    }
    rounds_done_[index(id)] = round + 1;
    after(pattern.rounds[round].latency, [this, id, round] { start_flows(id, round); });
  }

  void start_flows(OpId id, std::uint32_t round) {
    const Op& op = graph_[id];
    std::uint32_t started = 0;
    for (const Flow& flow : graph_.patterns()[index(op.pattern)].rounds[round].flows) {
      if (flow.wire * op.bytes.value <= 0) continue;
      ++started;
      const Machine::Ends ends = machine_.ends(flow);
      sg4::CommPtr comm = sg4::Comm::sendto_init(ends.from, ends.to);
      comm->set_payload_size(
          static_cast<std::uint64_t>(std::llround(flow.wire * op.bytes.value * machine_.units())));
      meter_.enter(flow, op.bytes, now());
      launch(comm, id, &flow);
    }
    flows_left_[index(id)] = started;
    if (started == 0) next_round(id);
  }

  template <class ActivityPtr>
  void launch(const ActivityPtr& activity, OpId id, const Flow* flow) {
    if (free_.empty()) free_.push_back(&slots_.emplace_back());
    Slot* slot = free_.back();
    free_.pop_back();
    *slot = {activity, id, flow};
    ++trace_.activities;
    activity->set_data(slot);
    activity->start();
  }

  void completed(const sg4::Activity& activity) {
    Slot* slot = activity.get_data<Slot>();
    const Slot done = std::exchange(*slot, {});
    free_.push_back(slot);
    if (done.flow == nullptr) {
      change(graph_[done.op].rank).computations -= 1;
      finish(done.op);
    } else {
      meter_.leave(*done.flow, now());
      if (--flows_left_[index(done.op)] == 0) next_round(done.op);
    }
    settle();
  }

  template <class Then>
  void after(Seconds delay, Then then) {
    if (delay.value <= 0) return then();
    ++trace_.activities;
    simgrid::kernel::timer::Timer::set(now() + delay.value, [this, then] {
      then();
      settle();
    });
  }

  void finish(OpId id) {
    trace_.finish[index(id)] = now();
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
    if (state != load.compute_state) machine_.set_compute(rank, state);
    load.compute_state = state;
    const bool slow_engines =
        state > 0 && load.computations > 0 && platform_.devices[rank].collective_share < 1;
    if (slow_engines != load.engines_slow) machine_.slow_engines(rank, slow_engines);
    load.engines_slow = slow_engines;
  }

  void conclude() {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (trace_.finish[i] < 0)
        throw std::logic_error(fmt::format("operation {} never finished", i));
      trace_.makespan.value = std::max(trace_.makespan.value, trace_.finish[i]);
    }
    trace_.ready = first_arrivals(graph_, trace_);
    trace_.links = meter_.take();
  }

  static double now() { return sg4::Engine::get_clock(); }

  const Platform& platform_;
  const OpGraph& graph_;
  Machine& machine_;
  Occupancy occupancy_;
  Successors successors_;
  Trace trace_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> rounds_done_, flows_left_;
  std::vector<OpId> released_, batch_;
  std::deque<Slot> slots_;  // stay where they are: activities point to theirs
  std::vector<Slot*> free_;
  std::vector<Load> load_;
  std::vector<Rank> changed_;
  LinkMeter meter_;
};

}  // namespace

Trace replay(const Platform& platform, const OpGraph& graph) {
  validate(platform);
  validate(graph, platform);
  start_engine();
  std::vector<std::string> arguments = engine_arguments();
  std::vector<char*> argv(arguments.size());
  for (std::size_t i = 0; i < argv.size(); ++i) argv[i] = arguments[i].data();
  int argc = static_cast<int>(argv.size());
  sg4::Engine engine(&argc, argv.data());
  std::signal(SIGINT, SIG_DFL);  // SimGrid's own handler would end with 1, which means "no"
  const Occupancy occupancy(graph, platform.devices.size());
  Machine machine(platform, graph, occupancy);
  return ReadyLoop(platform, graph, occupancy, machine).run(engine);
}

}  // namespace stepsim
