#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

// Returns a round over links in which every member of a group sends to each other one.
ScheduleRound every_pair(const Steps& steps, double share) {
  return {.steps = steps, .legs = {}, .to_each = share, .medium = Medium::link};
}

// Peers are served one after the other: first those of the own node, then node by node.
Steps peer_steps(const Layout& layout) {
  double largest = 0;
  for (const Group& node : layout.nodes)
    largest = std::max(largest, static_cast<double>(node.size()));
  return {largest - 1, static_cast<double>(layout.nodes.size()) - 1, 0};
}

}  // namespace

Schedule direct_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                         Detail detail) {
  const double n = static_cast<double>(group.size());
  const Layout layout = lay_out(cluster, group);
  const double away = layout.nodes.size() > 1 ? 1 : 0;
  const Steps hop{1 - away, away, 0};
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return {every_pair(hop, 1 / n)};
    case Collective::all_reduce:
      if (detail != Detail::stepped) return {every_pair({2 * hop.node, 2 * hop.network, 0}, 2 / n)};
      return {every_pair(hop, 1 / n), every_pair(hop, 1 / n)};
    case Collective::all_to_all:
      return {{peer_steps(layout), {}, 1 / n}};
    case Collective::broadcast: {
      // The root scatters, then everybody hands his part to everybody: all links carry, not only
      // the root's.
      std::vector<Leg> scatter;
      for (const Rank to : group.subspan(1))
        scatter.push_back({.source = group.front(), .target = to, .share = 1 / n});
      std::vector<Leg> hand_on;
      for (const Leg& leg : legs_of(every_pair(hop, 1 / n), group))
        if (leg.target != group.front()) hand_on.push_back(leg);
      return {{hop, scatter}, {hop, hand_on}};
    }
    case Collective::send_recv:
      return {{hop, {{.source = group.front(), .target = group.back(), .share = 1}}}};
  }
  return {};
}

Schedule exchange(const Cluster& cluster, std::span<const Rank> group,
                  const std::vector<std::vector<double>>& matrix) {
  ScheduleRound round{peer_steps(lay_out(cluster, group)), {}};
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t j = 0; j < group.size(); ++j)
      if (i != j && matrix[i][j] > 0)
        round.legs.push_back({.source = group[i],
                              .target = group[j],
                              .share = matrix[i][j],
                              .medium = Medium::exchange});
  return {round};
}

}  // namespace stepsim
