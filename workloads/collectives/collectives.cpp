#include "workloads/collectives/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

constexpr std::array algorithm_table{
    Algorithm{"ring", "n-1 steps round a ring, one ring per rail between nodes", ring_schedule},
    Algorithm{"direct", "one hop from everybody to everybody: full meshes, all_to_all",
              direct_schedule},
    Algorithm{"tree", "a double binary tree between nodes, chains inside: few steps",
              tree_schedule},
    Algorithm{"hierarchical", "inside the nodes, then one ring per rail, then inside again",
              hierarchical_schedule},
    Algorithm{"nvls", "the NVLink switch reduces and multicasts", nvls_schedule},
    Algorithm{"nvls_tree", "in-switch reduction in the nodes, a double binary tree between them",
              nvls_tree_schedule},
};

const Protocol& protocol_of(const Communication& communication, std::string_view name) {
  for (const Protocol& protocol : communication.protocols)
    if (protocol.name == name) return protocol;
  return communication.protocols.back();
}

// This is the payload per byte on the wire under one protocol, inside a node and between nodes.
class Efficiency {
 public:
  Efficiency(const Cluster& cluster, std::string_view protocol) {
    of_fabric(cluster.node.collectives, protocol, false);
    if (cluster.network) of_fabric(cluster.network->collectives, protocol, true);
    if (const auto& nvls = cluster.node.collectives.nvls)
      at(Medium::in_switch, false) = nvls->efficiency.value.value;
  }
  double of(Medium medium, bool crosses) const {
    return shares_[crosses ? 1 : 0][static_cast<std::size_t>(medium)];
  }
  // Returns the sort by which flows name it.
  static std::uint8_t sort(Medium medium, bool crosses) {
    return static_cast<std::uint8_t>(1 + static_cast<std::size_t>(medium) + (crosses ? 3 : 0));
  }
  double of_sort(std::uint8_t sort) const {
    return shares_[sort > 3 ? 1 : 0][static_cast<std::size_t>(sort - 1) % 3];
  }

 private:
  double& at(Medium medium, bool crosses) {
    return shares_[crosses ? 1 : 0][static_cast<std::size_t>(medium)];
  }
  void of_fabric(const Communication& fabric, std::string_view protocol, bool crosses) {
    const double share = protocol_of(fabric, protocol).efficiency.value.value;
    at(Medium::link, crosses) = share;
    at(Medium::exchange, crosses) = share * fabric.exchange.value.value;
  }

  std::array<std::array<double, 3>, 2> shares_{};
};

bool crosses_nodes(const Cluster& cluster, Rank source, Rank target) {
  return place_of(cluster, source).node != place_of(cluster, target).node;
}

Flow make_flow(const Cluster& cluster, const Leg& leg, const Efficiency& efficiency) {
  Flow flow{.source = leg.source, .target = leg.target, .share = leg.share};
  if (leg.medium == Medium::in_switch)
    flow.path = leg.towards ? to_switch(cluster, leg.source) : from_switch(cluster, leg.source);
  else
    flow.path = collective_route(cluster, leg.source, leg.target);
  if (flow.path.empty() && leg.medium == Medium::in_switch)
    throw UserError(fmt::format("no route between rank {} ({}) and the switch of its node on {}",
                                leg.source, to_text(cluster, place_of(cluster, leg.source)),
                                cluster.name));
  if (flow.path.empty()) no_route(cluster, leg.source, leg.target);
  const bool crosses = crosses_nodes(cluster, leg.source, leg.target);
  flow.wire = leg.share / efficiency.of(leg.medium, crosses);
  flow.sort = Efficiency::sort(leg.medium, crosses);
  return flow;
}

// Adds what every member sends to each other one; what goes to other nodes is one exchange.
void add_exchange(const Cluster& cluster, Round& made, const ScheduleRound& round,
                  std::span<const Rank> group, const Efficiency& efficiency) {
  const Layout layout = lay_out(cluster, group);
  const auto add_pairs = [&](std::span<const Rank> ranks) {
    for (const Leg& each : legs_of(
             {.steps = {}, .legs = {}, .to_each = round.to_each, .medium = round.medium}, ranks))
      made.flows.push_back(make_flow(cluster, each, efficiency));
  };
  // Ways through single cables have no two ends in common, so each pair has a flow of its own.
  if (cluster.routes) return add_pairs(group);
  for (const Group& node : layout.nodes) add_pairs(node);
  if (layout.nodes.size() < 2) return;
  made.exchange.share = round.to_each;
  made.exchange.wire = round.to_each / efficiency.of(round.medium, true);
  made.exchange.sort = Efficiency::sort(round.medium, true);
  made.exchange.ends.reserve(group.size());
  for (const Rank rank : group) {
    const bool first = holds(layout.nodes.front(), rank);
    const auto end = far_end(cluster, rank);
    if (!end) no_route(cluster, rank, layout.nodes[first ? 1 : 0].front());
    made.exchange.ends.push_back(*end);
  }
}

Seconds latency(const Cluster& cluster, const Steps& steps, std::string_view protocol) {
  Seconds sum = steps.node * protocol_of(cluster.node.collectives, protocol).step.value;
  if (steps.network > 0)
    sum += steps.network * (protocol_of(cluster.network->collectives, protocol).step.value +
                            cable_latency(cluster));
  if (steps.in_switch > 0) sum += steps.in_switch * cluster.node.collectives.nvls->step.value;
  return sum;
}

bool uses_network(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const ScheduleRound& round) { return round.steps.network > 0; });
}

// A channel of the library is a block of threads that keeps a multiprocessor to itself. Between
// nodes there are as many as the ports in use can feed, inside a node many more; what a device
// loses to these is known.
double occupancy_between_nodes(const Cluster& cluster, std::size_t ranks_on_node) {
  const auto& inside = cluster.node.collectives.channels;
  const auto& each_port = cluster.network->collectives.channels;
  if (!inside || !each_port) return 1;
  const double ports =
      std::min(static_cast<double>(ranks_on_node), double{1} * cluster.node.count(PartKind::nic));
  return std::min(1.0, ports * each_port->value.value / inside->value.value);
}

std::size_t most_on_node(const Cluster& cluster, std::span<const Rank> group) {
  std::size_t ranks = 1;
  for (const Group& node : lay_out(cluster, group).nodes) ranks = std::max(ranks, node.size());
  return ranks;
}

void add_launch(Pattern& pattern, const Cluster& cluster, bool network) {
  if (pattern.rounds.empty()) return;
  pattern.rounds.front().latency += cluster.node.collectives.launch.value;
  if (network) pattern.rounds.front().latency += cluster.network->collectives.launch.value;
}

void add_latency(Pattern& pattern, const Cluster& cluster, const Schedule& schedule,
                 std::string_view protocol) {
  for (std::size_t i = 0; i < schedule.size(); ++i)
    pattern.rounds[i].latency = latency(cluster, schedule[i].steps, protocol);
  add_launch(pattern, cluster, uses_network(schedule));
}

bool same_steps(const Schedule& a, const Schedule& b) {
  return std::ranges::equal(a, b, {}, &ScheduleRound::steps, &ScheduleRound::steps);
}

}  // namespace

std::string_view to_text(Collective kind) {
  return collective_kinds[static_cast<std::size_t>(kind)];
}

double bus_factor(Collective kind, std::size_t ranks) {
  const double n = static_cast<double>(ranks);
  switch (kind) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::send_recv:
      return 1;
  }
  return 1;
}

std::span<const Algorithm> algorithms() {
  return algorithm_table;
}

const Algorithm& find_algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithm_table) {
    if (algorithm.name == name) return algorithm;
    names.emplace_back(algorithm.name);
  }
  throw UserError(fmt::format("no algorithm \"{}\"{}; expected {}", name, did_you_mean(name, names),
                              one_of(names)));
}

std::vector<Leg> legs_of(const ScheduleRound& round, std::span<const Rank> group) {
  std::vector<Leg> legs = round.legs;
  for (std::size_t i = 0; round.to_each > 0 && i < group.size() * group.size(); ++i)
    if (const Rank from = group[i / group.size()], to = group[i % group.size()]; from != to)
      legs.push_back(
          {.source = from, .target = to, .share = round.to_each, .medium = round.medium});
  return legs;
}

Layout lay_out(const Cluster& cluster, std::span<const Rank> group) {
  Layout layout;
  std::unordered_map<std::uint32_t, std::size_t> place;  // looked up, never iterated
  for (const Rank rank : group) {
    const auto [entry, added] =
        place.try_emplace(place_of(cluster, rank).node, layout.nodes.size());
    if (added) layout.nodes.emplace_back();
    layout.nodes[entry->second].push_back(rank);
  }
  for (const Group& node : layout.nodes)
    layout.even = layout.even && node.size() == layout.nodes.front().size();
  return layout;
}

Pattern make_pattern(const Cluster& cluster, const Schedule& schedule, std::span<const Rank> group,
                     std::string_view name, std::string_view protocol) {
  Pattern pattern{.name = std::string(name), .members = {group.begin(), group.end()}, .rounds = {}};
  if (!cluster.network && lay_out(cluster, group).nodes.size() > 1)
    no_route(cluster, group.front(), group.back());
  const Efficiency efficiency(cluster, protocol);
  for (const ScheduleRound& round : schedule) {
    Round& made = pattern.rounds.emplace_back();
    made.flows.reserve(round.legs.size());
    for (const Leg& leg : round.legs) made.flows.push_back(make_flow(cluster, leg, efficiency));
    if (round.to_each > 0) add_exchange(cluster, made, round, group, efficiency);
  }
  add_latency(pattern, cluster, schedule, protocol);
  if (uses_network(schedule))
    pattern.occupancy = occupancy_between_nodes(cluster, most_on_node(cluster, group));
  return pattern;
}

Timing timing_of(const Cluster& cluster, std::span<const Schedule> schedules,
                 std::span<const std::vector<Rank>> groups) {
  Timing timing{.steps = {}, .known = true};
  for (const ScheduleRound& round : schedules.front()) timing.steps.push_back(round.steps);
  timing.network = uses_network(schedules.front());
  if (timing.network) timing.ranks = most_on_node(cluster, groups.front());
  for (std::size_t g = 1; g < groups.size(); ++g)
    timing.known = timing.known && same_steps(schedules.front(), schedules[g]) &&
                   (!timing.network || timing.ranks == most_on_node(cluster, groups[g]));
  return timing;
}

void retime(Pattern& pattern, const Cluster& cluster, const Timing& timing,
            std::string_view protocol) {
  const Efficiency efficiency(cluster, protocol);
  pattern.rounds.resize(timing.steps.size());
  for (std::size_t r = 0; r < timing.steps.size(); ++r) {
    pattern.rounds[r].latency = latency(cluster, timing.steps[r], protocol);
    for (Flow& flow : pattern.rounds[r].flows)
      flow.wire = flow.share / efficiency.of_sort(flow.sort);
  }
  add_launch(pattern, cluster, timing.network);
  if (timing.network) pattern.occupancy = occupancy_between_nodes(cluster, timing.ranks);
}

bool tells_sorts_apart(const Cluster& from, const Cluster& to, std::string_view protocol) {
  const Efficiency before(from, protocol), now(to, protocol);
  for (std::uint8_t a = 1; a <= 6; ++a)
    for (std::uint8_t b = 1; b < a; ++b)
      if (before.of_sort(a) != before.of_sort(b) && now.of_sort(a) == now.of_sort(b)) return false;
  return true;
}

Pattern in_protocol(Pattern pattern, const Cluster& cluster, const Schedule& schedule,
                    std::string_view name, std::string_view protocol) {
  pattern.name = name;
  const Efficiency efficiency(cluster, protocol);
  for (std::size_t r = 0; r < schedule.size(); ++r) {
    const ScheduleRound& round = schedule[r];
    Round& made = pattern.rounds[r];
    for (std::size_t i = 0; i < made.flows.size(); ++i) {
      Flow& flow = made.flows[i];  // behind those of the legs stand those inside the nodes
      const bool of_leg = i < round.legs.size();
      const bool crosses = crosses_nodes(cluster, flow.source, flow.target);
      flow.wire = flow.share / efficiency.of(of_leg ? round.legs[i].medium : round.medium, crosses);
      flow.sort = Efficiency::sort(of_leg ? round.legs[i].medium : round.medium, crosses);
    }
    if (!made.exchange.ends.empty())
      made.exchange.wire = made.exchange.share / efficiency.of(round.medium, true);
  }
  add_latency(pattern, cluster, schedule, protocol);
  return pattern;
}

}  // namespace stepsim
