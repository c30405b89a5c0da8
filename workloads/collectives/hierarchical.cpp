#include "sim/base/lists.hpp"
#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

// Merges the same part of the work in many groups: their rounds run side by side.
void merge(Schedule& all, const Schedule& one, std::span<const Rank> group) {
  if (all.size() < one.size()) all.resize(one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    all[i].steps = one[i].steps;
    append(all[i].legs, legs_of(one[i], group));
  }
}

Schedule scaled(Schedule schedule, double by) {
  for (ScheduleRound& round : schedule)
    for (Leg& leg : round.legs) leg.share *= by;
  return schedule;
}

struct TwoLevels {
  const Cluster& cluster;
  Layout layout;
  Detail detail;

  // All take the same steps.
  std::span<const Group> first_of(std::span<const Group> nodes) const {
    return detail == Detail::latency ? nodes.first(1) : nodes;
  }

  Schedule inside(Collective kind, double by) const {
    const bool mesh = cluster.node.count(PartKind::nvswitch) == 0;
    Schedule all;
    for (const Group& node : first_of(layout.nodes))
      merge(all,
            mesh || kind == Collective::all_to_all ? direct_schedule(cluster, kind, node, detail)
                                                   : ring_schedule(cluster, kind, node, detail),
            node);
    return scaled(std::move(all), by);
  }

  Schedule between(Collective kind, double by) const {
    Schedule all;
    const std::size_t rails = detail == Detail::latency ? 1 : layout.rails();
    for (std::size_t rail = 0; rail < rails; ++rail) {
      Group group;
      for (const Group& node : layout.nodes) group.push_back(node[rail]);
      merge(all,
            kind == Collective::all_to_all ? direct_schedule(cluster, kind, group, detail)
                                           : ring_schedule(cluster, kind, group, detail),
            group);
    }
    return scaled(std::move(all), by);
  }
};

}  // namespace

// Runs inside the nodes first or last, and as one ring per rail between them.
Schedule hierarchical_schedule(const Cluster& cluster, Collective kind, std::span<const Rank> group,
                               Detail detail) {
  const TwoLevels levels{cluster, lay_out(cluster, group), detail};
  if (!levels.layout.even || levels.layout.nodes.size() < 2 || levels.layout.rails() < 2) return {};
  // A rail carries what one member holds after the first level: 1 / rails of the buffer.
  const double part = 1 / static_cast<double>(levels.layout.rails());
  Schedule schedule;
  switch (kind) {
    case Collective::all_reduce:
      append(schedule, levels.inside(Collective::reduce_scatter, 1));
      append(schedule, levels.between(Collective::all_reduce, part));
      append(schedule, levels.inside(Collective::all_gather, 1));
      break;
    case Collective::all_gather:
      append(schedule, levels.between(Collective::all_gather, part));
      append(schedule, levels.inside(Collective::all_gather, 1));
      break;
    case Collective::reduce_scatter:
      append(schedule, levels.inside(Collective::reduce_scatter, 1));
      append(schedule, levels.between(Collective::reduce_scatter, part));
      break;
    case Collective::all_to_all:
      append(schedule, levels.inside(Collective::all_to_all, 1));
      append(schedule, levels.between(Collective::all_to_all, 1));
      break;
    case Collective::broadcast:
    case Collective::send_recv:
      break;
  }
  return schedule;
}

}  // namespace stepsim
