#include "sim/engine/simgrid/energy_meters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simgrid/plugins/energy.h>

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

namespace stepsim {
namespace {

bool draws_by_use(const LinkPower& power) {
  return power.busy != power.idle;
}

double joules_of(const sg4::Host* host, double later) {
  return sg_host_get_consumed_energy(host) + later * sg_host_get_current_consumption(host);
}

// Computed says what a program computes on one device.
struct Computed {
  std::set<Stream> streams{};
  std::set<int> streaming{};
};

std::vector<Computed> computed_on(const OpGraph& graph, std::size_t devices) {
  std::vector<Computed> all(devices);
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::compute) continue;
    all[op.rank].streams.insert(op.stream);
    all[op.rank].streaming.insert(op.streaming);
  }
  return all;
}

// Returns all sums of one of `sums` and one of `more`.
std::set<int> sums_with(const std::set<int>& sums, const std::set<int>& more) {
  std::set<int> all;
  for (const int sum : sums)
    for (const int each : more) all.insert(sum + each);
  return all;
}

}  // namespace

EnergyMeters::EnergyMeters(const Draws& draws, const OpGraph& graph, const Platform& platform)
    : draws_(draws), graph_(graph), states_(power_states(graph, platform.devices.size())) {
  sg_host_energy_plugin_init();
  if (apart() || draws.rank.network > 0) sg_link_energy_plugin_init();
  if (std::ranges::any_of(draws_.links, draws_by_use))
    sg4::Engine::on_time_advance_cb([this](double) {
      for (const WatchedLink& each : links_)
        if (draws_by_use(draws_.links[index(each.id)])) sg_link_get_consumed_energy(each.link);
    });
}

std::vector<double> EnergyMeters::speeds(Rank rank, const std::vector<double>& rates) const {
  std::vector<double> speeds;
  for (const double rate : rates) speeds.insert(speeds.end(), states_[rank].count(), rate);
  return speeds;
}

void EnergyMeters::watch(Rank rank, sg4::Host* device, std::size_t rates) {
  ranks_.push_back({.device = device});
  device->set_property("wattage_per_state", states_[rank].watts(draws_.rank, rates));
}

void EnergyMeters::add_standing(sg4::NetZone& zone, const std::string& host,
                                const std::string& port) {
  const RankPower& power = draws_.rank;
  Watched& rank = ranks_.back();
  rank.host = add_host(zone, host, std::vector<double>{1, 1});  // at rest, and while it updates
  rank.host->set_property("wattage_per_state", fmt::format("{0}:{0}:{0},{1}:{1}:{1}", power.host,
                                                           power.host + power.cores));
  rank.host->seal();
  if (power.network <= 0) return;
  rank.port = add_link(zone, port, 1);
  rank.port->set_property("wattage_range", fmt::format("{0}:{0}", power.network));
  rank.port->seal();
}

void EnergyMeters::watch(LinkId id, sg4::Link* link, double stated_width) {
  if (!apart()) return;
  const LinkPower& power = draws_.links[index(id)];
  link->set_property(
      "wattage_range",
      fmt::format("{}:{}", power.idle, power.idle + stated_width * (power.busy - power.idle)));
  links_.push_back({id, link});
}

EnergyMeters::Watched& EnergyMeters::change(Rank rank) {
  Watched& each = ranks_[rank];
  if (!each.changed) changed_.push_back(rank);
  each.changed = true;
  return each;
}

void EnergyMeters::count(const Op& op, int by) {
  if (op.kind == OpKind::compute) {
    DeviceWork& work = change(op.rank).work;
    work.computations += by;
    work.streaming += by * op.streaming;
  } else if (op.kind == OpKind::collective || op.kind == OpKind::cpu) {
    const std::span<const Rank> members =
        op.pattern == no_pattern
            ? std::span(&op.rank, 1)
            : std::span<const Rank>(graph_.patterns()[index(op.pattern)].members);
    for (const Rank rank : members)
      (op.kind == OpKind::cpu ? change(rank).updates : change(rank).work.collectives) += by;
  }
}

void EnergyMeters::set_speed(Rank rank, std::size_t speed) {
  change(rank).speed = speed;
}

void EnergyMeters::settle() {
  for (const Rank rank : changed_) apply(ranks_[rank], states_[rank]);
  changed_.clear();
}

// A device that computes nothing keeps the state of its last computations: SimGrid sees by itself
// that there is no load, and the fewer states change the less it computes anew.
void EnergyMeters::apply(Watched& each, const PowerStates& states) {
  each.changed = false;
  if (each.work.computations > 0) each.mix = each.work;
  each.mix.collectives = each.work.collectives;
  const std::size_t state = each.speed * states.count() + states.place(each.mix);
  if (state != each.state) each.device->set_pstate(state);
  each.state = state;
  const unsigned long updating = each.updates > 0 ? 1 : 0;
  if (each.host->get_pstate() != updating) each.host->set_pstate(updating);
}

Meters EnergyMeters::read(double until) const {
  const double later = until - sg4::Engine::get_clock();
  Meters meters;
  for (const Watched& each : ranks_) {
    meters.gpus.push_back(joules_of(each.device, later));
    meters.hosts.push_back(joules_of(each.host, later));
    meters.network.push_back(each.port == nullptr ? 0
                                                  : sg_link_get_consumed_energy(each.port) +
                                                        later * draws_.rank.network);
  }
  meters.links.assign(draws_.links.size(), 0);
  for (const WatchedLink& each : links_)
    meters.links[index(each.id)] = sg_link_get_consumed_energy(each.link);
  return meters;
}

std::size_t PowerStates::place(const DeviceWork& work) const {
  const auto mix = std::ranges::find(mixes_, Mix{work.computations, work.streaming});
  if (mix == mixes_.end())
    throw std::logic_error(fmt::format("{} computations at once on one device, {} streaming parts",
                                       work.computations, work.streaming));
  return 2 * static_cast<std::size_t>(mix - mixes_.begin()) + (work.collectives > 0 ? 1 : 0);
}

std::string PowerStates::watts(const RankPower& power, std::size_t speeds) const {
  std::vector<std::string> states;
  for (std::size_t speed = 0; speed < speeds; ++speed)
    for (const Mix& mix : mixes_)
      for (const bool collectives : {false, true}) {
        // A device that a change slows has a load below 1 and draws as much as at full speed.
        const double under_load = power.of_device(mix.computations, mix.streaming, collectives);
        states.push_back(
            fmt::format("{0}:{1}:{1}", power.of_device(0, 0, collectives), under_load));
      }
  return fmt::format("{}", fmt::join(states, ","));
}

std::vector<PowerStates> power_states(const OpGraph& graph, std::size_t devices) {
  std::vector<PowerStates> all(devices);
  const std::vector<Computed> computed = computed_on(graph, devices);
  for (std::size_t device = 0; device < devices; ++device) {
    std::set<int> sums{0};
    for (int count = 1; count <= static_cast<int>(computed[device].streams.size()); ++count) {
      sums = sums_with(sums, computed[device].streaming);
      for (const int sum : sums) all[device].mixes_.push_back({count, sum});
    }
  }
  return all;
}

}  // namespace stepsim
