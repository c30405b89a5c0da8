// This is the only user of SimGrid. These properties of it shaped the file, each pinned by a test:
//  - handing over the whole graph is quadratic, so operations enter the engine when they are ready;
//  - an activity whose last handle is dropped crashes, so slots hold handles until completion, and
//    the last one of these beyond that;
//  - a missing route aborts the process, so program and platform are validated first;
//  - a payload is a whole number, so bytes are counted in fractions of a byte;
//  - a flow between hosts takes no rate limit, so a capped route ends in a pipe of that width;
//  - links share in inverse proportion to route latency, so links have none and latency is a timer;
//  - a flow is bound for life by the narrowest bandwidth that its links have when it starts, so a
//    link whose width changes states a bandwidth that never binds, and a callback its true width.
#include "sim/engine/simgrid/simgrid_replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <deque>
#include <functional>
#include <optional>
#include <simgrid/kernel/ProfileBuilder.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/engine/ready_loop.hpp"
#include "sim/engine/series.hpp"
#include "sim/engine/simgrid/energy_meters.hpp"

namespace stepsim {
namespace {

// SimGrid treats remaining work below 1e-10 units as done. In picoseconds that is nothing; in
// seconds it would be a visible part of a short kernel.
constexpr double work_per_second = 1e12;

// SimGrid takes whole bytes, and a third of a buffer is none: flows and links are scaled by a power
// of two that leaves the largest flow of the program within 62 bits.
double units_per_byte(const OpGraph& graph) {
  return std::ldexp(1.0, 61 - std::ilogb(std::max(1.0, largest_flow(graph).value)));
}

// A link whose width changes is said to be so many times wider than it is. This is a power of two,
// so that widths stay exact.
constexpr double stated_width = 0x1p20;

// Flows with the same links and the same cap share a route. This compares them, and hashes them.
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

void claim_process() {
  static bool started = false;
  if (started)
    throw std::logic_error(
        "simgrid_replay() runs once per process: SimGrid keeps its clock for good");
  started = true;
}

// The later of two equal keys counts, so a user's setting may replace one of ours.
std::vector<std::string> engine_arguments(std::span<const std::string> settings) {
  std::vector<std::string> arguments{
      "stepsim",
      "--log=root.thresh:critical",
      "--cfg=network/model:CM02",      // latency + bytes / bandwidth, no TCP corrections (+18 %)
      "--cfg=network/TCP-gamma:0",     // no window: a flow is never capped by latency
      "--cfg=network/crosstraffic:0",  // directions are links of their own
      "--cfg=surf/precision:1e-12",    // default 1e-9 would end a short kernel early
      "--cfg=network/weight-S:0",      // sharing does not depend on link bandwidth
      "--cfg=debug/verbose-exit:no",
  };
  for (const std::string& setting : settings) arguments.push_back("--cfg=" + setting);
  return arguments;
}

// SimGrid's complaint about an unknown key lists all that it knows: "  KEY: (type)value".
[[noreturn]] void refuse(std::span<const std::string> settings, const std::string& complaint) {
  std::vector<std::string> known;
  for (const std::string_view line : split(complaint, '\n'))
    if (line.starts_with("  ")) known.emplace_back(line.substr(2, line.find(": (") - 2));
  if (known.empty())
    throw UserError(
        fmt::format("--cfg: SimGrid refuses {}: {}", fmt::join(settings, ", "), complaint));
  for (const std::string& setting : settings)
    if (const std::string key = setting.substr(0, setting.find(':')); !holds(known, key))
      throw UserError(fmt::format("--cfg: SimGrid {}.{} has no \"{}\"{}", SIMGRID_VERSION_MAJOR,
                                  SIMGRID_VERSION_MINOR, key, did_you_mean(key, known)));
  throw UserError(fmt::format("--cfg: SimGrid refuses {}", fmt::join(settings, ", ")));
}

// SimGrid reads its configuration once, and knows no other way than arguments of a program.
sg4::Engine started_engine(std::span<const std::string> settings) {
  std::vector<std::string> arguments = engine_arguments(settings);
  std::vector<char*> argv(arguments.size());
  for (std::size_t i = 0; i < argv.size(); ++i) argv[i] = arguments[i].data();
  int argc = static_cast<int>(argv.size());
  try {
    return sg4::Engine(&argc, argv.data());
  } catch (const std::exception& error) {
    if (settings.empty()) throw;
    refuse(settings, error.what());
  }
}

// SimGrid wants each name once, and a platform may have one twice.
class Names {
 public:
  std::string of(const std::string& name) {
    std::string unique = name;
    for (int i = 2; !taken_.insert(unique).second; ++i) unique = fmt::format("{} #{}", name, i);
    return unique;
  }

 private:
  std::unordered_set<std::string> taken_;
};

// Returns a profile of SimGrid that follows changes, event by event, as long as somebody plays on.
// Its dates count from the event before.
simgrid::kernel::profile::Profile* profile_of(const std::string& name, std::vector<Change> changes,
                                              const bool& plays_on,
                                              std::function<double(double)> value_at) {
  using simgrid::kernel::profile::DatedValue;
  return simgrid::kernel::profile::ProfileBuilder::from_callback(
      name,
      [changes = std::move(changes), value_at = std::move(value_at), &plays_on, time = 0.0,
       first = true](std::vector<DatedValue>& values) mutable {
        if (std::exchange(first, false)) return void(values.emplace_back(0, value_at(0)));
        const auto next = plays_on ? next_change(changes, time) : std::nullopt;
        if (!next) return;
        values.emplace_back(*next - time, value_at(*next));
        time = *next;
      },
      -1);
}

// Machine builds hosts and links in SimGrid for the devices and paths of a program.
class Machine {
 public:
  Machine(const Platform& platform, const OpGraph& graph, const Occupancy& occupancy,
          EnergyMeters* meters)
      : platform_(platform),
        units_(units_per_byte(graph)),
        meters_(meters),
        series_(platform.links, graph, meters != nullptr && meters->apart()) {
    zone_ = add_zone("cluster");
    for (Rank rank = 0; rank < platform.devices.size(); ++rank) {
      const Device& device = platform.devices[rank];
      sg4::Host* host = add_device(rank, occupancy.rates(device, device.speed * work_per_second));
      if (!device.changes.empty())
        host->set_speed_profile(
            profile_of("speed of " + host->get_name(), device.changes, plays_on_,
                       [&device](double time) { return share_at(device.changes, time); }));
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
  // Ends the profiles: from now on nothing needs to change any more.
  void stop_changes() { plays_on_ = false; }
  sg4::Host* device(Rank rank) const { return devices_[rank]; }

  void set_compute(Rank rank, std::size_t state) {
    if (meters_ != nullptr) return meters_->set_speed(rank, state);
    devices_[rank]->set_pstate(state);
  }
  void slow_engines(Rank rank, bool slow) {
    const Device& device = platform_.devices[rank];
    for (const LinkId id : device.engines) {
      if (!series_.used(id)) continue;
      const double before = series_.width(id);
      series_.scale(id, slow ? device.collective_share : 1);
      if (series_.width(id) == before) continue;
      sg4::Link* link = links_[index(series_.first(id))];
      link->set_bandwidth(link->get_bandwidth());  // has the link's callback asked again
    }
  }

 private:
  sg4::Host* add_device(Rank rank, const std::vector<double>& rates) {
    const std::string name = names_.of(platform_.devices[rank].name);
    if (meters_ == nullptr) return add_host(*zone_, name, rates);
    sg4::Host* host = add_host(*zone_, name, meters_->speeds(rank, rates));
    meters_->watch(rank, host, rates.size());
    meters_->add_standing(*zone_, names_.of("node of " + name), names_.of("port of " + name));
    return host;
  }

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
      sources_.push_back(add_host(*zone_, names_.of(fmt::format("from {}", i)), 1.0));
      targets_.push_back(add_host(*zone_, names_.of(fmt::format("to {}", i)), 1.0));
    }
    if (meters_ != nullptr && meters_->apart())
      for (std::uint32_t i = 0; i < links_.size(); ++i) open(LinkId{i});
    std::vector<sg4::LinkInRoute> route;
    for (std::size_t id = 0; id < routes_.size(); ++id) {
      route.clear();
      for (const LinkId link : routes_[id]->path)
        if (series_.first(link) == link) route.emplace_back(open(link));
      if (std::isfinite(routes_[id]->rate_cap)) route.emplace_back(pipe(id));
      add_route(*zone_, sources_[id / columns_], targets_[id % columns_], route);
    }
  }

  sg4::Link* open(LinkId id) {
    sg4::Link*& link = links_[index(id)];
    if (link != nullptr) return link;
    const double stated = units_ * series_.width(id) * stated_width;
    link = add_link(*zone_, names_.of(platform_.links[index(id)].name), stated);
    link->set_sharing_policy(sg4::Link::SharingPolicy::NONLINEAR,
                             [this, id](double, int) { return units_ * series_.width(id); });
    follow_changes(id, link, stated);
    if (meters_ != nullptr) meters_->watch(id, link, stated_width);
    return link->set_latency(0)->seal();
  }

  // The profile says when a link of the series changes; by how much, the callback asks the series.
  void follow_changes(LinkId first, sg4::Link* link, double stated) {
    std::vector<Change> changes;
    for (std::uint32_t i = 0; i < platform_.links.size(); ++i)
      if (series_.used(LinkId{i}) && series_.first(LinkId{i}) == first)
        append(changes, platform_.links[i].changes);
    if (changes.empty()) return;
    link->set_bandwidth_profile(profile_of("bandwidth of " + link->get_name(), std::move(changes),
                                           plays_on_, [stated](double) { return stated; }));
    if (std::exchange(follows_, true)) return;
    sg4::Link::on_bandwidth_change_cb([this](const sg4::Link&) {
      for (std::uint32_t i = 0; i < platform_.links.size(); ++i)
        if (const Link& each = platform_.links[i]; !each.changes.empty())
          series_.change(LinkId{i}, share_at(each.changes, sg4::Engine::get_clock()));
    });
  }

  // Returns a link on which each flow gets the whole width.
  sg4::Link* pipe(std::size_t route) {
    return add_link(*zone_, names_.of(fmt::format("limit {}", route)),
                    units_ * routes_[route]->rate_cap)
        ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
        ->set_latency(0)
        ->seal();
  }

  const Platform& platform_;
  const double units_;
  EnergyMeters* const meters_;  // null: nobody asks for energy
  Series series_;
  Names names_;
  bool plays_on_ = true, follows_ = false;
  sg4::NetZone* zone_ = nullptr;
  std::vector<sg4::Host*> devices_, sources_, targets_;
  std::vector<sg4::Link*> links_;
  std::unordered_map<const Flow*, std::size_t, SameRoute, SameRoute> route_ids_;  // only looked up
  std::vector<const Flow*> routes_;
  std::size_t columns_ = 1;
};

// This engine passes time for the ready loop. There is one loop, known when the engine runs.
class SimGridEngine {
 public:
  SimGridEngine(const OpGraph& graph, Machine& machine, EnergyMeters* meters)
      : graph_(graph), machine_(machine), meters_(meters) {}

  static double now() { return sg4::Engine::get_clock(); }

  void set_timer(Seconds delay, OpId op) {
    simgrid::kernel::timer::Timer::set(now() + delay.value, [this, op] {
      loop_->timer_ended(op);
      settle();
    });
  }

  void compute(Rank rank, Seconds seconds, OpId op) {
    sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_flops_amount(seconds.value * work_per_second);
    exec->set_host(machine_.device(rank));
    launch(exec, op, nullptr);
  }

  void send(PatternId pattern, std::uint32_t round, std::uint32_t number, Bytes bytes, OpId op) {
    const Flow& flow = graph_.patterns()[index(pattern)].rounds[round].flows[number];
    const Machine::Ends ends = machine_.ends(flow);
    sg4::CommPtr comm = sg4::Comm::sendto_init(ends.from, ends.to);
    comm->set_payload_size(
        static_cast<std::uint64_t>(std::llround(flow.wire * bytes.value * machine_.units())));
    launch(comm, op, &flow);
  }

  void set_compute(Rank rank, std::size_t state) { machine_.set_compute(rank, state); }
  void slow_engines(Rank rank, bool slow) { machine_.slow_engines(rank, slow); }

  void begins(const Op& op) {
    if (meters_ != nullptr) meters_->begins(op);
  }
  void ends(const Op& op) {
    if (meters_ != nullptr) meters_->ends(op);
  }

  Trace run(ReadyLoop<SimGridEngine>& loop, sg4::Engine& engine, std::optional<double> lost_at) {
    loop_ = &loop;
    on_completion([this](const sg4::Activity& activity) { completed(activity); });
    loop.begin();
    settled();
    if (lost_at)
      engine.run_until(*lost_at);
    else
      engine.run();
    // SimGrid complains of handles that end before what they are of: these end with the process.
    for (Slot& slot : slots_) slot.activity.detach();
    Trace trace = loop.take();
    if (meters_ != nullptr)
      trace.meters = read_ ? std::move(*read_) : meters_->read(trace.makespan.value);
    return trace;
  }

 private:
  struct Slot {
    sg4::ActivityPtr activity;  // the handle must outlive the activity
    OpId op{};
    const Flow* flow = nullptr;  // null: a computation
  };

  template <class ActivityPtr>
  void launch(const ActivityPtr& activity, OpId id, const Flow* flow) {
    if (free_.empty()) free_.push_back(&slots_.emplace_back());
    Slot* slot = free_.back();
    free_.pop_back();
    *slot = {activity, id, flow};
    activity->set_data(slot);
    activity->start();
  }

  void settle() {
    loop_->settle();
    settled();
  }

  // The clock goes on after the program where neighbours still send: meters are read before.
  void settled() {
    if (meters_ != nullptr) meters_->settle();
    if (!loop_->done()) return;
    machine_.stop_changes();
    if (meters_ != nullptr && !read_) read_ = meters_->read(now());
  }

  void completed(const sg4::Activity& activity) {
    Slot* slot = activity.get_data<Slot>();
    const Slot done = std::exchange(*slot, {});
    ended_ = done.activity;
    free_.push_back(slot);
    if (done.flow == nullptr)
      loop_->computed(done.op);
    else
      loop_->sent(done.op, *done.flow);
    settle();
  }

  const OpGraph& graph_;
  Machine& machine_;
  EnergyMeters* const meters_;
  std::optional<Meters> read_;
  ReadyLoop<SimGridEngine>* loop_ = nullptr;
  std::deque<Slot> slots_;  // stay where they are: activities point to theirs
  std::vector<Slot*> free_;
  sg4::ActivityPtr ended_;  // SimGrid looks at an activity once more behind its callback
};

}  // namespace

Trace simgrid_replay(const Platform& platform, const OpGraph& graph, Watched watched,
                     std::span<const std::string> settings, const Draws* draws) {
  validate(platform);
  validate(graph, platform);
  claim_process();
  sg4::Engine engine = started_engine(settings);
  std::signal(SIGINT, SIG_DFL);  // SimGrid's own handler would end with 1, which means "no"
  const Occupancy occupancy(graph, platform.devices.size());
  std::optional<EnergyMeters> meters;
  if (draws != nullptr) meters.emplace(*draws, graph, platform);
  EnergyMeters* const asked = meters ? &*meters : nullptr;
  Machine machine(platform, graph, occupancy, asked);
  SimGridEngine simgrid(graph, machine, asked);
  const Waits waits(graph);
  ReadyLoop<SimGridEngine> loop(
      platform, graph, occupancy, waits, simgrid,
      {.times = watched != Watched::makespan, .links = watched == Watched::everything});
  Trace trace = simgrid.run(loop, engine, platform.lost_at);
  trace.by.simgrid = 1;
  trace.by.version = fmt::format("{}.{}", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
  return trace;
}

}  // namespace stepsim

extern "C" void stepsim_simgrid_replay(const stepsim::Platform& platform,
                                       const stepsim::OpGraph& graph, stepsim::Watched watched,
                                       std::span<const std::string> settings,
                                       const stepsim::Draws* draws, stepsim::Trace& trace) {
  trace = stepsim::simgrid_replay(platform, graph, watched, settings, draws);
}
