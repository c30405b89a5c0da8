#include "workloads/collectives/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <unordered_map>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

void check(const Cluster& cluster, const Group& group) {
  if (group.empty()) throw UserError("ranks: expected at least one rank, found none");
  Group sorted = group;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.back() >= cluster.ranks())
    throw UserError(fmt::format("ranks: no rank {}; {} has ranks 0 to {}", sorted.back(),
                                cluster.name, cluster.ranks() - 1));
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw UserError(fmt::format("ranks: rank {} is listed twice", *twice));
}

// A fabric may consider an algorithm as its library's tuner does: "nvls_tree up to 2 nodes", "tree
// in ll".
struct WantedAlgorithm {
  std::string algorithm;
  std::string protocol;  // empty: any
};

std::vector<WantedAlgorithm> wanted_ones(const std::vector<std::string>& said, std::size_t nodes) {
  constexpr std::string_view limit = " up to ", way = " in ";
  std::vector<WantedAlgorithm> all;
  for (const std::string& each : said) {
    const std::size_t most = each.find(limit), in = each.find(way);
    if (most != std::string::npos &&
        std::strtoul(each.c_str() + most + limit.size(), nullptr, 10) < nodes)
      continue;
    all.push_back({each.substr(0, std::min(most, in)),
                   in == std::string::npos ? "" : each.substr(in + way.size())});
  }
  return all;
}

// The library of the fabric that a group lies on: the network's beyond a node.
const Communication& fabric_of(const Cluster& cluster, const Group& group) {
  return spans_nodes(cluster, group) && cluster.network ? cluster.network->collectives
                                                        : cluster.node.collectives;
}

std::vector<WantedAlgorithm> wanted_algorithms(const Cluster& cluster, Collective kind,
                                               const Group& group, const PlanOptions& options) {
  if (!options.algorithm.empty())
    return {{std::string(find_algorithm(options.algorithm).name), ""}};
  return wanted_ones(algorithms_for(fabric_of(cluster, group), to_text(kind)),
                     cluster.network ? lay_out(cluster, group).nodes.size() : 1);
}

std::vector<std::string> wanted_protocols(const Communication& fabric, const PlanOptions& options) {
  std::vector<std::string> names;
  for (const Protocol& protocol : fabric.protocols)
    if (options.protocol.empty() || options.protocol == protocol.name)
      names.push_back(protocol.name);
  return names;
}

// In-switch reduction has one way of its own, which goes with the protocol for large messages.
bool suits(std::string_view algorithm, std::string_view protocol) {
  return protocol == "simple" || !algorithm.starts_with("nvls");
}

void add_candidates(CollectivePlan& plan, const Cluster& cluster, const WantedAlgorithm& wanted,
                    const PlanOptions& options) {
  const Algorithm& algorithm = find_algorithm(wanted.algorithm);
  std::vector<Schedule> schedules;
  for (const Group& group : plan.groups) {
    schedules.push_back(algorithm.schedule(cluster, plan.kind, group, options.detail));
    if (schedules.back().empty()) return;
    if (options.detail != Detail::latency) continue;
    for (ScheduleRound& round : schedules.back()) round = {.steps = round.steps, .legs = {}};
  }
  const Timing timing = timing_of(cluster, schedules, plan.groups);
  std::optional<std::size_t> first;  // with the ways that the others take as well
  for (const std::string& protocol :
       wanted_protocols(fabric_of(cluster, plan.groups.front()), options)) {
    if (!suits(algorithm.name, protocol)) continue;
    if (!wanted.protocol.empty() && protocol != wanted.protocol) continue;
    Candidate candidate{std::string(algorithm.name), protocol, {}, {}};
    const std::string name = fmt::format("{} {} {}", to_text(plan.kind), algorithm.name, protocol);
    candidate.patterns.reserve(plan.groups.size());
    for (std::size_t g = 0; g < plan.groups.size(); ++g)
      candidate.patterns.push_back(
          first ? in_protocol(plan.candidates[*first].patterns[g], cluster, schedules[g], name,
                              protocol)
                : make_pattern(cluster, schedules[g], plan.groups[g], name, protocol));
    if (!first) first = plan.candidates.size();
    candidate.cost = cost_of(cluster, candidate.patterns);
    candidate.timing = timing;
    plan.candidates.push_back(std::move(candidate));
  }
}

// Adds a launch without traffic: nothing has to move, but the kernel is launched.
void add_single_rank(CollectivePlan& plan, const Cluster& cluster) {
  Candidate candidate{"none", "none", {}, {}};
  for (const Group& group : plan.groups)
    candidate.patterns.push_back({.name = fmt::format("{} alone", to_text(plan.kind)),
                                  .members = group,
                                  .rounds = {{cluster.node.collectives.launch.value, {}}}});
  candidate.cost = cost_of(cluster, candidate.patterns);
  candidate.timing = {.steps = {Steps{}}, .known = true};
  plan.candidates.push_back(std::move(candidate));
}

// Loads say what links have to carry for each byte of an operation, and which is the first of the
// busiest ones.
class Loads {
 public:
  explicit Loads(const Cluster& cluster)
      : capacity_(capacities_of(cluster)), load_(link_count(cluster), 0) {}

  void clear() {
    for (const LinkId link : loaded_) load_[index(link)] = 0;
    loaded_.clear();
    slowest = 0;
  }
  void add(const Path& path, double wire) {
    for (const LinkId link : path) add(link, wire);
  }
  void add(const Exchange& exchange) {
    std::unordered_map<std::uint32_t, double> in_place, in_area;  // looked up, never iterated
    std::unordered_map<std::uint64_t, double> in_both;
    const auto both = [](const FarEnd& end) {
      return static_cast<std::uint64_t>(end.place) << 32U | end.area;
    };
    for (const FarEnd& end : exchange.ends) {
      ++in_place[end.place];
      ++in_area[end.area];
      ++in_both[both(end)];
    }
    const auto all = static_cast<double>(exchange.ends.size());
    for (const FarEnd& end : exchange.ends) {
      const double far = all - in_place[end.place];
      const double further = far - (in_area[end.area] - in_both[both(end)]);
      add(end.out, far * exchange.wire);
      if (further > 0) add(end.up, further * exchange.wire);
      if (further > 0) add(end.down, further * exchange.wire);
      add(end.in, far * exchange.wire);
    }
  }

  double slowest = 0;  // s/B
  LinkId busiest{};

 private:
  void add(LinkId link, double wire) {
    double& sum = load_[index(link)];
    if (sum == 0) loaded_.push_back(link);
    sum += wire / capacity_(link).value;
    // Links in a row are equally busy: the first to get there is named.
    if (sum > slowest * (1 + 1e-12)) busiest = link;
    slowest = std::max(slowest, sum);
  }

  std::function<BytesPerSecond(LinkId)> capacity_;
  std::vector<double> load_;  // s/B per link
  std::vector<LinkId> loaded_;
};

// Returns the cost as that of the whole, but that links in between which are never the busiest are
// left out.
Cost cost_of(const Family& folded, const Platform& platform, std::size_t rounds, LinkId busiest) {
  Cost cost{.fixed = {}, .busiest = busiest};
  for (std::size_t r = 0; r < rounds; ++r) {
    std::vector<double> load(platform.links.size(), 0);  // s/B
    double latency = 0, slowest = 0;
    for (const Pattern& pattern : folded) {
      latency = std::max(latency, pattern.rounds[r].latency.value);
      for (const Flow& flow : pattern.rounds[r].flows)
        for (const LinkId id : flow.path) {
          const Link& link = platform.links[index(id)];
          for (auto left = static_cast<std::int64_t>(link.weight); left > 0; --left)
            load[index(id)] += flow.wire / link.capacity.value;
          slowest = std::max(slowest, load[index(id)]);
        }
    }
    cost.fixed.value += latency;
    cost.per_byte += slowest;
  }
  return cost;
}

// Chooses the quickest one at other rates, with its latencies.
bool choose_signal(CollectivePlan& plan, Family& folded, const Cluster& to) {
  Candidate* best = nullptr;
  Pattern quickest;
  for (Candidate& each : plan.all_ways) {
    if (!each.timing.known) return false;
    Pattern pattern{};
    retime(pattern, to, each.timing, each.protocol);
    each.cost = cost_of({pattern}, {}, pattern.rounds.size(), {});
    if (best != nullptr && each.cost.fixed.value >= best->cost.fixed.value) continue;
    best = &each;
    quickest = std::move(pattern);
  }
  if (best == nullptr) return false;
  plan.candidates = {*best};
  for (Pattern& pattern : folded) {
    if (best->algorithm != "none")
      pattern.name = fmt::format("{} {} {}", to_text(plan.kind), best->algorithm, best->protocol);
    pattern.rounds = quickest.rounds;
    pattern.occupancy = quickest.occupancy;
  }
  return true;
}

bool sorts_are_known(const Family& family) {
  for (const Pattern& pattern : family)
    for (const Round& round : pattern.rounds)
      for (const Flow& flow : round.flows)
        if (flow.sort == 0) return false;
  return true;
}

}  // namespace

bool spans_nodes(const Cluster& cluster, const Group& group) {
  return std::any_of(group.begin(), group.end(), [&](Rank rank) {
    return place_of(cluster, rank).node != place_of(cluster, group.front()).node;
  });
}

CollectivePlan plan_collective(const Cluster& cluster, Collective kind, std::vector<Group> groups,
                               const PlanOptions& options) {
  for (const Group& group : groups) check(cluster, group);
  if (groups.empty()) throw UserError("ranks: expected at least one group, found none");
  CollectivePlan plan{kind, std::move(groups), {}};
  const Group& first = plan.groups.front();
  if (first.size() == 1) {
    add_single_rank(plan, cluster);
    return plan;
  }
  for (const WantedAlgorithm& wanted : wanted_algorithms(cluster, kind, first, options))
    add_candidates(plan, cluster, wanted, options);
  if (plan.candidates.empty())
    throw UserError(fmt::format(
        "{}{} cannot do {} for {} ranks on {} node{} of {}",
        options.algorithm.empty() ? "no known algorithm" : "algorithm ", options.algorithm,
        to_text(kind), first.size(), lay_out(cluster, first).nodes.size(),
        lay_out(cluster, first).nodes.size() == 1 ? "" : "s", cluster.name));
  return plan;
}

CollectivePlan plan_ring_pass(const Cluster& cluster, std::vector<Group> groups) {
  CollectivePlan plan{Collective::send_recv, std::move(groups), {}};
  for (const std::string& protocol : wanted_protocols(cluster.node.collectives, {})) {
    Candidate candidate{"ring_pass", protocol, {}, {}};
    for (const Group& group : plan.groups) {
      check(cluster, group);
      const bool far = spans_nodes(cluster, group);
      ScheduleRound round{{far ? 0.0 : 1.0, far ? 1.0 : 0.0, 0}, {}};
      for (std::size_t i = 0; i < group.size(); ++i)
        round.legs.push_back(
            {.source = group[i], .target = group[(i + 1) % group.size()], .share = 1});
      candidate.patterns.push_back(
          make_pattern(cluster, {round}, group, fmt::format("ring_pass {}", protocol), protocol));
    }
    candidate.cost = cost_of(cluster, candidate.patterns);
    plan.candidates.push_back(std::move(candidate));
  }
  return plan;
}

CollectivePlan plan_exchange(const Cluster& cluster, std::vector<Group> groups) {
  CollectivePlan plan{Collective::all_to_all, std::move(groups), {}};
  const std::string protocol = wanted_protocols(cluster.node.collectives, {}).back();
  Candidate candidate{"kernels", protocol, {}, {}};
  for (const Group& group : plan.groups) {
    check(cluster, group);
    const bool far = spans_nodes(cluster, group);
    const ScheduleRound round{.steps = {far ? 0.0 : 1.0, far ? 1.0 : 0.0, 0},
                              .legs = {},
                              .to_each = 1 / static_cast<double>(group.size()),
                              .medium = Medium::link};
    candidate.patterns.push_back(make_pattern(cluster, {round}, group, "exchange", protocol));
    candidate.patterns.back().occupancy = 1;  // a set of multiprocessors is put aside for them
  }
  candidate.cost = cost_of(cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

CollectivePlan plan_copy(const Cluster& cluster, Copy direction, std::span<const Rank> ranks) {
  CollectivePlan plan;
  Candidate candidate{"copy", "dma", {}, {}};
  for (const Rank rank : ranks) {
    check(cluster, {rank});
    const Place gpu = place_of(cluster, rank);
    const std::uint32_t banks = cluster.node.count(PartKind::dram);
    const Place dram{gpu.node, PartKind::dram,
                     gpu.index * banks / cluster.node.count(PartKind::gpu)};
    Flow flow{.source = rank,
              .target = rank,
              .path = banks == 0               ? Path{}
                      : direction == Copy::h2d ? route(cluster, dram, gpu)
                                               : route(cluster, gpu, dram),
              .share = 1,
              .wire = 1};
    if (flow.path.empty())
      throw UserError(fmt::format("no route between {} and host memory on {}",
                                  to_text(cluster, gpu), cluster.name));
    plan.groups.push_back({rank});
    candidate.patterns.push_back({.name = direction == Copy::h2d ? "h2d" : "d2h",
                                  .members = {rank},
                                  .rounds = {{cluster.node.host.copy_start.value, {flow}}},
                                  .occupancy = 0});
  }
  candidate.cost = cost_of(cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

CollectivePlan plan_cpu_update(const Cluster& cluster, std::span<const Rank> ranks,
                               const HostUpdate& update) {
  CollectivePlan plan;
  Candidate candidate{"update", "cpu", {}, {}};
  const Host& host = cluster.node.host;
  const std::uint32_t banks = cluster.node.count(PartKind::dram);
  for (const Rank rank : ranks) {
    const Place gpu = place_of(cluster, rank);
    const std::uint32_t bank = gpu.index * banks / cluster.node.count(PartKind::gpu);
    Flow flow{.source = rank,
              .target = rank,
              .path = banks == 0 ? Path{}
                                 : route(cluster, {gpu.node, PartKind::dram, bank},
                                         {gpu.node, PartKind::socket, bank}),
              .share = 1,
              .wire = 1};
    if (flow.path.empty())
      throw UserError(fmt::format("{} has no host memory for an optimizer", cluster.name));
    // The update alone reaches less than a stream through the same memory does.
    double stream = capacity_of(cluster, flow.path.front()).value;
    for (const LinkId link : flow.path) stream = std::min(stream, capacity_of(cluster, link).value);
    const double reached = 1e9 * host.cpu_adam_bytes.value.value / update.adam.value;
    flow.wire = std::max(1.0, stream / reached);
    flow.rate_cap = update.most.value * flow.wire;
    plan.groups.push_back({rank});
    candidate.patterns.push_back({.name = "cpu_update",
                                  .members = {rank},
                                  .rounds = {{Seconds{0}, {flow}}},
                                  .occupancy = 0});
  }
  candidate.cost = cost_of(cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

std::size_t choose(const CollectivePlan& plan, Bytes bytes) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < plan.candidates.size(); ++i)
    if (plan.candidates[i].cost.at(bytes) < plan.candidates[best].cost.at(bytes)) best = i;
  return best;
}

CollectivePlan plan_signal(const Cluster& cluster, Collective kind, std::vector<Group> groups) {
  CollectivePlan plan =
      plan_collective(cluster, kind, std::move(groups), {.detail = Detail::latency});
  const std::size_t chosen = choose(plan, {});
  plan.all_ways = std::move(plan.candidates);
  plan.candidates = {plan.all_ways[chosen]};
  for (Candidate& each : plan.all_ways) each.patterns.clear();
  return plan;
}

Cost cost_of(const Cluster& cluster, const Family& patterns) {
  Cost cost;
  double longest = 0;
  std::size_t rounds = 0;
  for (const Pattern& pattern : patterns) rounds = std::max(rounds, pattern.rounds.size());
  Loads loads(cluster);
  for (std::size_t r = 0; r < rounds; ++r) {
    loads.clear();
    double latency = 0;
    for (const Pattern& pattern : patterns) {
      if (r >= pattern.rounds.size()) continue;
      latency = std::max(latency, pattern.rounds[r].latency.value);
      for (const Flow& flow : pattern.rounds[r].flows) loads.add(flow.path, flow.wire);
      loads.add(pattern.rounds[r].exchange);
    }
    if (loads.slowest > longest) cost.busiest = loads.busiest;
    longest = std::max(longest, loads.slowest);
    cost.fixed.value += latency;
    cost.per_byte += loads.slowest;
  }
  return cost;
}

bool retime(CollectivePlan& plan, std::span<Family> folded, const Platform& platform,
            const Cluster& from, const Cluster& to) {
  if (!plan.all_ways.empty()) return choose_signal(plan, folded.front(), to);
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    Candidate& candidate = plan.candidates[i];
    if (!candidate.timing.known || !sorts_are_known(folded[i]) ||
        !tells_sorts_apart(from, to, candidate.protocol))
      return false;
    for (Pattern& pattern : folded[i]) retime(pattern, to, candidate.timing, candidate.protocol);
    candidate.cost =
        cost_of(folded[i], platform, candidate.timing.steps.size(), candidate.cost.busiest);
  }
  return true;
}

Machinery machinery_of(const Cluster& cluster) {
  std::vector<std::uint64_t> kinds;  // equally fast or not
  kinds.reserve(cluster.speeds.size());
  for (const double speed : cluster.speeds) kinds.push_back(std::bit_cast<std::uint64_t>(speed));
  const ClusterEvents& events = cluster.events;
  if (!events.gpus.empty()) kinds.resize(cluster.ranks(), 0);
  for (const auto& [rank, change] : events.gpus) kinds[rank] = rank + 1;  // like no other
  return {.ranks = cluster.ranks(),
          .links = link_count(cluster),
          .capacity = capacities_of(cluster),
          .link = [&cluster](LinkId id) { return link_of(cluster, id); },
          .device = [&cluster](Rank rank) { return device_of(cluster, rank); },
          .sort = cluster.slow_links.empty() && events.empty() && !cluster.routes
                      ? sorts_of(cluster)
                      : std::function<std::uint32_t(LinkId)>{},
          .kinds = std::move(kinds),
          .changing = mapped(events.links, &std::pair<LinkId, Change>::first),
          .lost_at = events.lost_at};
}

CollectivePlan plan_neighbours(const Cluster& cluster) {
  CollectivePlan plan;
  for (const NodeTraffic& each : cluster.events.neighbours) {
    Pattern pattern{.name = "neighbour", .rounds = {{}}, .occupancy = 0};
    for (std::uint32_t gpu = 0; gpu < cluster.gpus_per_node(); ++gpu)
      if (Path path = network_route(cluster, each.from, each.to, gpu); !path.empty())
        pattern.rounds.front().flows.push_back({.path = std::move(path), .share = 1, .wire = 1});
    plan.candidates.push_back({"neighbour", "", {std::move(pattern)}, {}});
  }
  return plan;
}

CollectivePlan plan_file(const Cluster& cluster, FileAccess access, std::span<const Rank> ranks,
                         const FileRate& rate) {
  CollectivePlan plan;
  const bool reads = access == FileAccess::read;
  Candidate candidate{"file", reads ? "read" : "write", {}, {}};
  const auto nearest = [&](const Place& gpu, PartKind kind) {
    const std::uint32_t parts = cluster.node.count(kind);
    return Place{gpu.node, kind, gpu.index * parts / cluster.node.count(PartKind::gpu)};
  };
  const bool parts =
      cluster.node.count(PartKind::nvme) > 0 && cluster.node.count(PartKind::dram) > 0;
  for (const Rank rank : ranks) {
    const Place gpu = place_of(cluster, rank);
    const Place drive = nearest(gpu, PartKind::nvme), memory = nearest(gpu, PartKind::dram);
    Flow flow{.source = rank,
              .target = rank,
              .path = !parts  ? Path{}
                      : reads ? route(cluster, drive, memory)
                              : route(cluster, memory, drive),
              .share = 1,
              .wire = rate.share,
              .rate_cap = rate.most.value * rate.share};
    if (flow.path.empty())
      throw UserError(fmt::format("no route between drives and host memory on {}", cluster.name));
    plan.groups.push_back({rank});
    candidate.patterns.push_back({.name = reads ? "read" : "write",
                                  .members = {rank},
                                  .rounds = {{Seconds{0}, {flow}}},
                                  .occupancy = 0});
  }
  candidate.cost = cost_of(cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

}  // namespace stepsim
