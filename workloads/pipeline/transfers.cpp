#include "workloads/pipeline/transfers.hpp"

#include <fmt/format.h>

namespace stepsim {

CollectivePlan plan_sends(const Cluster& cluster, std::vector<Group> pairs) {
  CollectivePlan plan{Collective::send_recv, std::move(pairs), {}};
  for (const Protocol& protocol : cluster.node.collectives.protocols) {
    Candidate candidate{"send", protocol.name, {}, {}};
    std::vector<Schedule> schedules;
    for (const Group& pair : plan.groups) {
      const bool between_nodes = spans_nodes(cluster, pair);
      ScheduleRound round{{between_nodes ? 0.0 : 1.0, between_nodes ? 1.0 : 0.0, 0}, {}};
      round.legs.push_back({.source = pair.front(), .target = pair.back(), .share = 1});
      candidate.patterns.push_back(make_pattern(
          cluster, {round}, pair, fmt::format("send {}", protocol.name), protocol.name));
      schedules.push_back({round});
    }
    candidate.timing = timing_of(cluster, schedules, plan.groups);
    candidate.cost = cost_of(cluster, candidate.patterns);
    plan.candidates.push_back(std::move(candidate));
  }
  return plan;
}

void plan_stages(Plans& plans, const Cluster& cluster, const Mesh& mesh, PipelineWay way) {
  std::vector<Group> next, previous, ends, copies;
  const Rank step = mesh.in_stage();
  for (Rank rank = 0; rank < mesh.ranks; ++rank) {
    const Rank behind = (rank + step) % mesh.ranks;
    next.push_back({rank, behind});
    previous.push_back({behind, rank});
    copies.push_back({rank, (mesh.stages - 1 - rank / step) * step + rank % step});
  }
  for (Rank rank = 0; rank < step; ++rank) ends.push_back({rank, mesh.ranks - step + rank});
  plans[Plan::to_next_stage] = plan_sends(cluster, std::move(next));
  plans[Plan::to_previous_stage] = plan_sends(cluster, std::move(previous));
  if (way == PipelineWay::both_ways) plans[Plan::to_copy] = plan_sends(cluster, std::move(copies));
  if (way != PipelineWay::round) return;
  plans[Plan::end_stages] = plan_collective(cluster, Collective::all_reduce, std::move(ends));
}

}  // namespace stepsim
