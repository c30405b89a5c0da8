#include "topology/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Links are numbered in this order: first all nodes' own, then two or three per port, then two per
// leaf, or those of the cables between switches.
struct Numbering {
  std::uint32_t per_node, nics;
  std::uint32_t shared;    // ports that a node's NICs share, one each if there are enough
  std::uint32_t per_port;  // up, down, and what both share
  std::uint32_t leaves_per_unit;
  std::uint32_t ports;   // first port link
  std::uint32_t leaves;  // first leaf link
  std::uint32_t end;
};

Numbering numbering(const Cluster& cluster) {
  Numbering n{};
  n.per_node = static_cast<std::uint32_t>(cluster.graph.links.size());
  n.ports = n.per_node * cluster.nodes;
  n.leaves = n.end = n.ports;
  if (!cluster.network || cluster.nodes < 2) return n;
  const Network::Leaf& leaf = cluster.network->leaf;
  n.nics = cluster.node.count(PartKind::nic);
  const std::uint32_t ports = cluster.network->ports;
  n.shared = ports > 0 ? std::min(ports, n.nics) : n.nics;
  n.leaves_per_unit = leaf.per_rail ? n.nics : 1;
  const bool has_ports = !cluster.routes || cluster.routes->has_ports;
  n.per_port = !has_ports ? 0 : cluster.network->thread ? 3 : 2;
  n.leaves = n.ports + n.per_port * n.nics * cluster.nodes;
  if (cluster.routes) {
    n.end = n.leaves + static_cast<std::uint32_t>(cluster.routes->lines.size());
    return n;
  }
  const std::uint32_t last =
      cluster.placement.empty() ? cluster.nodes - 1 : std::ranges::max(cluster.placement);
  n.end = n.leaves + 2 * n.leaves_per_unit * (last / leaf.nodes + 1);
  return n;
}

enum Direction : std::uint32_t { up = 0, down = 1, both = 2 };

LinkId port(const Numbering& n, std::uint32_t node, std::uint32_t nic, Direction direction) {
  return LinkId{n.ports + n.per_port * (node * n.nics + nic % n.shared) + direction};
}

void append_port(Path& path, const Numbering& n, std::uint32_t node, std::uint32_t nic,
                 Direction direction) {
  if (n.per_port == 0) return;
  path.push_back(port(n, node, nic, direction));
  if (n.per_port > both) path.push_back(port(n, node, nic, both));
}

std::uint32_t leaf_of(const Cluster& cluster, const Numbering& n, std::uint32_t node,
                      std::uint32_t nic) {
  const Network::Leaf& leaf = cluster.network->leaf;
  return cluster.place(node) / leaf.nodes * n.leaves_per_unit + (leaf.per_rail ? nic : 0);
}

LinkId leaf_link(const Numbering& n, std::uint32_t leaf, Direction direction) {
  return LinkId{n.leaves + 2 * leaf + direction};
}

// Appends the route inside one node; false when there is none.
bool append(Path& path, const Cluster& cluster, std::uint32_t node, std::uint32_t from,
            std::uint32_t to) {
  if (from == to) return true;
  const auto& local = cluster.graph.route(from, to);
  const auto first = static_cast<std::uint32_t>(node * cluster.graph.links.size());
  for (const std::uint32_t link : local) path.push_back(LinkId{first + link});
  return !local.empty();
}

LinkId engine(const Cluster& cluster, const Place& gpu, const std::vector<std::uint32_t>& engines) {
  return LinkId{static_cast<std::uint32_t>(gpu.node * cluster.graph.links.size()) +
                engines[gpu.index]};
}

std::uint32_t exit_nic(const Cluster& cluster, const Place& place) {
  return place.kind == PartKind::gpu ? nic_of(cluster, place.index) : 0;
}

bool same_ways(const Communication& a, const Communication& b) {
  return std::ranges::equal(a.protocols, b.protocols, {}, &Protocol::name, &Protocol::name) &&
         a.algorithms == b.algorithms && a.nvls.has_value() == b.nvls.has_value() &&
         a.channels.has_value() == b.channels.has_value();
}

bool same_cables(const Network& a, const Network& b) {
  return a.name == b.name && a.thread.has_value() == b.thread.has_value() &&
         a.leaf.nodes == b.leaf.nodes && a.leaf.per_rail == b.leaf.per_rail &&
         same_ways(a.collectives, b.collectives);
}

BytesPerSecond stated_capacity(const Cluster& cluster, const Numbering& n, LinkId id) {
  const auto number = static_cast<std::uint32_t>(id);
  if (number < n.ports) return cluster.graph.links[number % n.per_node].capacity;
  const Network& network = *cluster.network;
  if (number >= n.leaves)
    return cluster.routes ? cluster.routes->lines[number - n.leaves].capacity
                          : network.leaf.uplink.value;
  return (number - n.ports) % n.per_port == both ? network.thread->value : network.port.value;
}

BytesPerSecond capacity(const Cluster& cluster, const Numbering& n, LinkId id) {
  BytesPerSecond capacity = stated_capacity(cluster, n, id);
  for (const auto& [slow, share] : cluster.slow_links)
    if (slow == id) capacity.value *= share;
  return capacity;
}

// The changes of one link or rank.
template <class Id>
std::vector<Change> changes_of(const std::vector<std::pair<Id, Change>>& events, Id id) {
  std::vector<Change> changes;
  for (const auto& [which, change] : events)
    if (which == id) changes.push_back(change);
  return changes;
}

Link stated_link(const Cluster& cluster, LinkId id) {
  const Numbering n = numbering(cluster);
  const auto number = static_cast<std::uint32_t>(id);
  constexpr std::array<std::string_view, 3> names{"up", "down", "thread"};
  if (number < n.ports) {
    const std::string& name = cluster.graph.links[number % n.per_node].name;
    return {cluster.nodes > 1 ? fmt::format("node{}.{}", number / n.per_node, name) : name,
            capacity_of(cluster, id)};
  }
  if (number < n.leaves) {
    const std::uint32_t port_number = (number - n.ports) / n.per_port;
    return {fmt::format("node{}.port{}.{}", port_number / n.nics, port_number % n.nics,
                        names[(number - n.ports) % n.per_port]),
            capacity_of(cluster, id)};
  }
  if (cluster.routes)
    return {cluster.routes->lines[number - n.leaves].name, capacity_of(cluster, id)};
  const std::uint32_t leaf = (number - n.leaves) / 2;
  return {fmt::format("leaf{}.{}", leaf, names[(number - n.leaves) % 2]), capacity_of(cluster, id)};
}

// Appends the links from one NIC's port to another's, or from GPU to GPU.
bool append_between(Path& path, const Cluster& cluster, const Numbering& n, const Place& from,
                    const Place& to) {
  if (cluster.routes) {
    const auto way = cluster.routes->way(cluster.routes->end(from.node, from.index),
                                         cluster.routes->end(to.node, to.index));
    for (const std::uint32_t line : way.value_or(std::span<const std::uint32_t>{}))
      path.push_back(LinkId{n.leaves + line});
    return way.has_value();
  }
  const std::uint32_t leaf = leaf_of(cluster, n, from.node, from.index);
  const std::uint32_t other_leaf = leaf_of(cluster, n, to.node, to.index);
  if (leaf == other_leaf) return true;
  path.push_back(leaf_link(n, leaf, up));
  path.push_back(leaf_link(n, other_leaf, down));
  return true;
}

Path switch_route(const Cluster& cluster, Rank rank, bool towards) {
  const Place place = place_of(cluster, rank);
  if (cluster.node.count(PartKind::nvswitch) == 0) return {};
  const std::uint32_t gpu = cluster.graph.part(PartKind::gpu, place.index);
  const std::uint32_t hub = cluster.graph.part(PartKind::nvswitch, 0);
  Path path;
  if (!append(path, cluster, place.node, towards ? gpu : hub, towards ? hub : gpu)) return {};
  path.push_back(
      engine(cluster, place, towards ? cluster.graph.engine_out : cluster.graph.engine_in));
  return path;
}

}  // namespace

std::optional<RankPower> power_of(const Cluster& cluster) {
  const auto& gpu = cluster.gpu.draw;
  const auto& node = cluster.node.draw;
  const bool wired = cluster.nodes > 1 && cluster.network;
  if (!gpu || !node || (wired && !cluster.network->draw)) return std::nullopt;
  const double share = static_cast<double>(cluster.nodes) / cluster.ranks();
  RankPower power{.idle = gpu->idle.number(),
                  .memory = gpu->memory.number(),
                  .compute = gpu->compute.number(),
                  .communication = gpu->communication.number(),
                  .limit = cluster.gpu.power.number(),
                  .host = share * node->standing.number(),
                  .cores = share * node->cores.number()};
  if (wired) {
    const std::uint32_t ports =
        cluster.network->ports > 0 ? cluster.network->ports : cluster.node.count(PartKind::nic);
    power.network = share * ports * cluster.network->draw->number();
  }
  return power;
}

bool carry_alike(const Cluster& a, const Cluster& b) {
  const auto facts = [](const Cluster& c) {
    return std::tie(c.name, c.node, c.network, c.routes, c.nodes, c.gpus_used, c.uneven,
                    c.placement, c.speeds, c.slow_links, c.events, c.gpu.interference);
  };
  return facts(a) == facts(b);
}

bool wired_alike(const Cluster& a, const Cluster& b) {
  const auto facts = [](const Cluster& c) {
    return std::tie(c.name, c.node.name, c.node.parts, c.graph.first_part, c.graph.routes,
                    c.graph.engine_out, c.graph.engine_in, c.routes, c.nodes, c.gpus_used, c.uneven,
                    c.placement, c.speeds, c.slow_links, c.events);
  };
  return facts(a) == facts(b) && same_ways(a.node.collectives, b.node.collectives) &&
         a.network.has_value() == b.network.has_value() &&
         (!a.network || same_cables(*a.network, *b.network));
}

Place place_of(const Cluster& cluster, Rank rank) {
  for (std::uint32_t node = 0; node < cluster.uneven.size(); ++node) {
    if (rank < cluster.uneven[node]) return {node, PartKind::gpu, rank};
    rank -= cluster.uneven[node];
  }
  return {rank / cluster.gpus_per_node(), PartKind::gpu, rank % cluster.gpus_per_node()};
}

std::string to_text(const Cluster& cluster, const Place& place) {
  const std::string part = fmt::format("{} {}", to_text(place.kind), place.index);
  return cluster.nodes > 1 ? fmt::format("node {} {}", place.node, part) : part;
}

std::uint32_t nic_of(const Cluster& cluster, std::uint32_t gpu) {
  return gpu * cluster.node.count(PartKind::nic) / cluster.node.count(PartKind::gpu);
}

std::size_t link_count(const Cluster& cluster) {
  return numbering(cluster).end;
}

BytesPerSecond capacity_of(const Cluster& cluster, LinkId id) {
  return capacity(cluster, numbering(cluster), id);
}

std::function<BytesPerSecond(LinkId)> capacities_of(const Cluster& cluster) {
  return [&cluster, n = numbering(cluster)](LinkId id) { return capacity(cluster, n, id); };
}

std::function<std::uint32_t(LinkId)> sorts_of(const Cluster& cluster) {
  return [n = numbering(cluster)](LinkId id) {
    const auto number = static_cast<std::uint32_t>(id);
    if (number < n.ports) return number % n.per_node;
    if (number >= n.leaves) return n.per_node + 2;
    return (number - n.ports) % n.per_port == both ? n.per_node + 1 : n.per_node;
  };
}

Link link_of(const Cluster& cluster, LinkId id) {
  Link link = stated_link(cluster, id);
  link.changes = changes_of(cluster.events.links, id);
  return link;
}

std::optional<FarEnd> far_end(const Cluster& cluster, Rank rank) {
  const NodeGraph& graph = cluster.graph;
  if (!cluster.network || cluster.node.count(PartKind::nic) == 0) return std::nullopt;
  const Place place = place_of(cluster, rank);
  const Numbering n = numbering(cluster);
  const std::uint32_t nic = exit_nic(cluster, place), leaf = leaf_of(cluster, n, place.node, nic);
  const std::uint32_t gpu = graph.part(place.kind, place.index);
  FarEnd end{.rank = rank,
             .place = place.node,
             .area = leaf,
             .up = leaf_link(n, leaf, up),
             .down = leaf_link(n, leaf, down)};
  if (!append(end.out, cluster, place.node, gpu, graph.part(PartKind::nic, nic)))
    return std::nullopt;
  append_port(end.out, n, place.node, nic, up);
  append_port(end.in, n, place.node, nic, down);
  if (!append(end.in, cluster, place.node, graph.part(PartKind::nic, nic), gpu))
    return std::nullopt;
  return end;
}

Seconds cable_latency(const Cluster& cluster) {
  return cluster.routes ? cluster.routes->latency : Seconds{};
}

Path route(const Cluster& cluster, const Place& from, const Place& to) {
  const NodeGraph& graph = cluster.graph;
  Path path;
  if (from.node == to.node) {
    append(path, cluster, from.node, graph.part(from.kind, from.index),
           graph.part(to.kind, to.index));
    return path;
  }
  const Numbering n = numbering(cluster);
  if (cluster.routes && cluster.routes->of_gpus)
    return append_between(path, cluster, n, from, to) ? path : Path{};
  if (!cluster.network || cluster.node.count(PartKind::nic) == 0) return {};
  const std::uint32_t out = exit_nic(cluster, from), in = exit_nic(cluster, to);
  if (!append(path, cluster, from.node, graph.part(from.kind, from.index),
              graph.part(PartKind::nic, out)))
    return {};
  append_port(path, n, from.node, out, up);
  if (!append_between(path, cluster, n, {from.node, PartKind::nic, out},
                      {to.node, PartKind::nic, in}))
    return {};
  append_port(path, n, to.node, in, down);
  if (!append(path, cluster, to.node, graph.part(PartKind::nic, in), graph.part(to.kind, to.index)))
    return {};
  return path;
}

void no_route(const Cluster& cluster, Rank from, Rank to) {
  const Place a = place_of(cluster, from), b = place_of(cluster, to);
  std::string why;
  if (cluster.routes && a.node != b.node) {
    const auto start = [&](const Place& place) {
      const std::uint32_t end = cluster.routes->end(place.node, exit_nic(cluster, place));
      return cluster.routes->starts[cluster.routes->row_of[end]];
    };
    why = fmt::format(": no way from {} to {} over the cables of {}", start(a), start(b),
                      cluster.network->name);
  }
  throw UserError(fmt::format("no route from rank {} ({}) to rank {} ({}) on {}{}", from,
                              to_text(cluster, a), to, to_text(cluster, b), cluster.name, why));
}

Path collective_route(const Cluster& cluster, Rank from, Rank to) {
  const Place a = place_of(cluster, from), b = place_of(cluster, to);
  Path path = route(cluster, a, b);
  // A NIC is far slower than the engine, and fetches its data without the fabric inside the node.
  if (path.empty() || a.node != b.node) return path;
  // Last, so that of equally busy links the cable is named and not the engine.
  path.push_back(engine(cluster, a, cluster.graph.engine_out));
  path.push_back(engine(cluster, b, cluster.graph.engine_in));
  return path;
}

Path to_switch(const Cluster& cluster, Rank rank) {
  return switch_route(cluster, rank, true);
}
Path from_switch(const Cluster& cluster, Rank rank) {
  return switch_route(cluster, rank, false);
}

Path network_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                   std::uint32_t gpu) {
  const std::uint32_t first_port = numbering(cluster).ports;
  Path path;
  for (const LinkId link : route(cluster, {from, PartKind::gpu, gpu}, {to, PartKind::gpu, gpu}))
    if (static_cast<std::uint32_t>(link) >= first_port) path.push_back(link);
  return path;
}

Device device_of(const Cluster& cluster, Rank rank) {
  const Place place = place_of(cluster, rank);
  return {.name = cluster.nodes > 1 ? fmt::format("node{}.gpu{}", place.node, place.index)
                                    : fmt::format("gpu{}", place.index),
          .speed = cluster.speeds.empty() ? 1 : cluster.speeds[rank],
          .compute_share = cluster.gpu.interference.compute.value.value,
          .collective_share = cluster.gpu.interference.collective.value.value,
          .engines = {engine(cluster, place, cluster.graph.engine_out),
                      engine(cluster, place, cluster.graph.engine_in)},
          .changes = changes_of(cluster.events.gpus, rank)};
}

}  // namespace stepsim
