#include <algorithm>
#include <utility>

#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

// Returns the parent of a position. Positions are ordered by the lowest set bit: odd ones are
// leaves, a position's parent has the next higher lowest bit, and 0 is the root above all. If the
// tree is cut off there, the next ancestor steps in.
std::size_t parent_of(std::size_t position, std::size_t positions) {
  const std::size_t bit = position & (~position + 1);
  const std::size_t rest = position ^ bit;
  const std::size_t parent = rest | (bit << 1);
  return parent < positions ? parent : rest;
}

// Half of a rail's bytes go over each of the two trees.
constexpr double part_of_tree = 0.5;

// Within a node, or where nodes differ, links tell who talks with whom.
void add_trees(PairShares& shares, const Layout& layout, const DoubleTree& tree) {
  for (const auto& edges : tree.trees) {
    for (const TreeEdge& edge : edges) {
      const Rank child = layout.nodes[edge.child][0], parent = layout.nodes[edge.parent][0];
      shares.add(child, parent, part_of_tree);
      shares.add(parent, child, part_of_tree);
    }
  }
}

// Edges at the position that has the most, in both trees.
double busiest_place(const DoubleTree& tree) {
  std::vector<double> edges_at(tree.trees.front().size() + 1, 0);
  for (const auto& edges : tree.trees)
    for (const TreeEdge& edge : edges) {
      ++edges_at[edge.child];
      ++edges_at[edge.parent];
    }
  return *std::ranges::max_element(edges_at);
}

// Adds trees between the nodes, rail by rail. Inner places of one tree are leaves of the other, so
// that ports carry alike but for a few at the edge, whom nobody waits for. They are taken to carry
// as much as the others, to the neighbours on either side: so no node is told from another, and a
// step on thousands of them is written once.
void add_rail_trees(PairShares& shares, const Layout& layout, const DoubleTree& tree) {
  const std::size_t nodes = layout.nodes.size();
  const double share = part_of_tree * busiest_place(tree) / 2 / static_cast<double>(layout.rails());
  for (std::size_t rail = 0; rail < layout.rails(); ++rail) {
    for (std::size_t node = 0; node < nodes; ++node) {
      const Rank here = layout.nodes[node][rail], next = layout.nodes[(node + 1) % nodes][rail];
      shares.add(here, next, share);
      shares.add(next, here, share);
    }
  }
}

// Inside a node each rail's bytes run along a chain that ends at the rail's own member.
void add_chains(PairShares& shares, const Layout& layout) {
  const std::size_t rails = layout.rails();
  const double part = 1 / static_cast<double>(rails);
  for (const Group& node : layout.nodes) {
    for (std::size_t rail = 0; rail < rails; ++rail) {
      for (std::size_t k = 1; k < rails; ++k) {
        const Rank near = node[swing(rail, k - 1, rails)], far = node[swing(rail, k, rails)];
        shares.add(far, near, part);
        shares.add(near, far, part);
      }
    }
  }
}

// A group within one node, or one that is spread unevenly: every rank is a position of the tree.
Layout one_each(std::span<const Rank> group) {
  Layout layout;
  for (const Rank rank : group) layout.nodes.push_back({rank});
  return layout;
}

// Runs without a pipeline: the whole buffer climbs level by level, then descends.
Schedule stepped_tree(const Layout& layout, const DoubleTree& tree, bool reduces, Steps hop) {
  Schedule schedule;
  const auto level_round = [&](std::size_t level, bool up) {
    PairShares shares;
    for (const auto& edges : tree.trees)
      for (const TreeEdge& edge : edges)
        if (edge.level == level) {
          const Rank child = layout.nodes[edge.child][0], parent = layout.nodes[edge.parent][0];
          shares.add(up ? child : parent, up ? parent : child, 0.5);
        }
    schedule.push_back({hop, std::move(shares).legs()});
  };
  if (reduces)
    for (std::size_t level = tree.depth; level > 0; --level) level_round(level, true);
  for (std::size_t level = 1; level <= tree.depth; ++level) level_round(level, false);
  return schedule;
}

// Each member owns 1 / n of the buffer: the switch reads that slice from all and hands him the sum
// (n slices up in total, one down), then he writes it once and the switch copies it to all.
std::vector<Leg> in_switch_legs(std::span<const Rank> members) {
  std::vector<Leg> legs;
  const double share = 1 + 1 / static_cast<double>(members.size());
  for (const Rank rank : members)
    for (const bool towards : {true, false})
      legs.push_back({rank, rank, share, Medium::in_switch, towards});
  return legs;
}

}  // namespace

DoubleTree double_tree(std::size_t positions) {
  DoubleTree result;
  for (std::size_t position = 1; position < positions; ++position) {
    std::size_t level = 0;
    for (std::size_t up = position; up != 0; up = parent_of(up, positions)) ++level;
    result.depth = std::max(result.depth, level);
    const std::size_t parent = parent_of(position, positions);
    result.trees[0].push_back({position, parent, level});
    // Read backwards, or moved on by one when the count is odd: leaves become inner positions.
    const auto turned = [&](std::size_t p) {
      return positions % 2 == 0 ? positions - 1 - p : (p + 1) % positions;
    };
    result.trees[1].push_back({turned(position), turned(parent), level});
  }
  return result;
}

Schedule tree_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                       Detail detail) {
  if (kind != Collective::all_reduce) return {};
  Layout layout = lay_out(cluster, group);
  const bool local = layout.nodes.size() == 1;
  const bool alike = !local && layout.even;
  if (!alike) layout = one_each(group);
  const DoubleTree tree = double_tree(layout.nodes.size());
  if (detail == Detail::stepped && layout.rails() == 1)
    return stepped_tree(layout, tree, true, {local ? 1.0 : 0.0, local ? 0.0 : 1.0, 0});
  const double chain = 2 * static_cast<double>(layout.rails() - 1);
  const double climb = 2 * static_cast<double>(tree.depth);
  const Steps steps{chain + (local ? climb : 0), local ? 0 : climb, 0};
  if (detail == Detail::latency) return {{steps, {}}};
  PairShares shares;
  if (alike) {
    add_chains(shares, layout);
    add_rail_trees(shares, layout, tree);
  } else {
    add_trees(shares, layout, tree);
  }
  return {{steps, std::move(shares).legs()}};
}

Schedule nvls_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                       Detail) {
  if (kind != Collective::all_reduce || !cluster.node.collectives.nvls) return {};
  if (lay_out(cluster, group).nodes.size() != 1 || group.size() < 2) return {};
  return {{{0, 0, 2}, in_switch_legs(group)}};
}

Schedule nvls_tree_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                            Detail detail) {
  if (kind != Collective::all_reduce || !cluster.node.collectives.nvls) return {};
  const Layout layout = lay_out(cluster, group);
  if (layout.nodes.size() < 2 || !layout.even || layout.rails() < 2) return {};
  const DoubleTree tree = double_tree(layout.nodes.size());
  const Steps steps{0, 2 * static_cast<double>(tree.depth), 2};
  if (detail == Detail::latency) return {{steps, {}}};
  PairShares shares;
  add_rail_trees(shares, layout, tree);
  std::vector<Leg> legs = std::move(shares).legs();
  for (const Group& node : layout.nodes) {
    const std::vector<Leg> local = in_switch_legs(node);
    legs.insert(legs.end(), local.begin(), local.end());
  }
  return {{steps, std::move(legs)}};
}

}  // namespace stepsim
