#include <algorithm>
#include <utility>

#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

// Returns one ring per rail. Ring c enters an even node at member c and swings through all members;
// an odd node is passed the other way round. So a ring changes nodes on one rail, every NIC carries
// one ring out and one in, and inside a mesh no two rings take the same link.
std::vector<Group> rings(const Layout& layout) {
  if (!layout.even || layout.nodes.size() < 2) {
    Group ring;
    for (const Group& node : layout.nodes) ring.insert(ring.end(), node.begin(), node.end());
    return {ring};
  }
  const std::size_t rails = layout.rails();
  std::vector<Group> all;
  for (std::size_t c = 0; c < rails; ++c) {
    Group ring;
    for (std::size_t n = 0; n < layout.nodes.size(); ++n)
      for (std::size_t k = 0; k < rails; ++k)
        ring.push_back(layout.nodes[n][swing(c, n % 2 == 0 ? k : rails - 1 - k, rails)]);
    all.push_back(std::move(ring));
  }
  return all;
}

// Returns the edges of all rings together, each pair once.
std::vector<Leg> edges(const std::vector<Group>& all, double share, const Rank* cut_before) {
  PairShares shares;
  for (const Group& ring : all) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Rank from = ring[i], to = ring[(i + 1) % ring.size()];
      if (from == to || (cut_before != nullptr && to == *cut_before)) continue;
      shares.add(from, to, share / static_cast<double>(all.size()));
    }
  }
  return std::move(shares).legs();
}

// Returns whether every pair of GPUs has a link that no other pair from the same one, or to the
// same one, takes.
bool is_mesh(const Cluster& cluster, std::span<const Rank> group) {
  std::vector<std::pair<LinkId, Rank>> sources, targets;
  const auto every_pair = [&](const auto& visit) {
    for (const Rank from : group)
      for (const Rank to : group)
        if (from != to) visit(from, to, collective_route(cluster, from, to));
  };
  every_pair([&](Rank from, Rank to, const Path& path) {
    for (const LinkId link : path) sources.emplace_back(link, from), targets.emplace_back(link, to);
  });
  for (auto* ends : {&sources, &targets}) {
    std::ranges::sort(*ends);
    ends->erase(std::unique(ends->begin(), ends->end()), ends->end());
  }
  const auto has_one = [](const auto& ends, LinkId link) {
    return std::ranges::equal_range(ends, link, {}, [](const auto& end) {
             return end.first;
           }).size() == 1;
  };
  bool own = group.size() > 2;
  every_pair([&](Rank, Rank, const Path& path) {
    own = own && std::ranges::any_of(path, [&](LinkId link) {
            return has_one(sources, link) && has_one(targets, link);
          });
  });
  return own;
}

// Returns the edges of as many rings at once as a GPU has neighbours in a mesh, no two of them over
// the same link.
std::vector<Leg> edges_of_mesh(std::span<const Rank> group, double share) {
  std::vector<Leg> legs;
  for (const Rank from : group)
    for (const Rank to : group)
      if (from != to)
        legs.push_back(
            {.source = from, .target = to, .share = share / static_cast<double>(group.size() - 1)});
  return legs;
}

}  // namespace

Schedule ring_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                       Detail detail) {
  const double n = static_cast<double>(group.size());
  const Layout layout = lay_out(cluster, group);
  const double m = static_cast<double>(layout.nodes.size());
  if (kind == Collective::all_to_all) return {};
  // An all-reduce is a reduce-scatter and an all-gather: each n - 1 steps of 1 / n of the buffer.
  const double turns = kind == Collective::all_reduce ? 2 : 1;
  // A chunk passes all edges but the one that leads to its own rank. Where a node has several
  // ranks the chunk of most of them passes all edges between nodes, and the slowest counts.
  const double far = m < 2 ? 0 : std::min(m, n - 1);
  const Steps steps{turns * (n - 1 - far), turns * far, 0};
  if (detail == Detail::latency) return {{steps, {}}};
  const std::vector<Group> all = rings(layout);
  if (kind == Collective::broadcast) return {{{n - m, m - 1, 0}, edges(all, 1, &group.front())}};
  if (kind == Collective::send_recv) return {{{n - m, m - 1, 0}, edges(all, 1, nullptr)}};
  const bool mesh = layout.nodes.size() == 1 && is_mesh(cluster, group);
  const auto legs = [&](double share) {
    return mesh ? edges_of_mesh(group, share) : edges(all, share, nullptr);
  };
  if (detail == Detail::fluid) return {{steps, legs(turns * (n - 1) / n)}};
  Schedule schedule;
  const std::vector<Leg> step = legs(1 / n);
  const std::size_t rounds = static_cast<std::size_t>(turns) * (group.size() - 1);
  for (std::size_t i = 0; i < rounds; ++i) {
    const bool crosses = static_cast<double>(i) < steps.network;
    schedule.push_back({{crosses ? 0.0 : 1.0, crosses ? 1.0 : 0.0, 0}, step});
  }
  return schedule;
}

}  // namespace stepsim
