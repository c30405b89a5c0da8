#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "workloads/collectives/plan.hpp"

namespace stepsim {

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
