#include "workloads/pipeline/step_traffic.hpp"

#include <algorithm>
#include <list>

#include "workloads/pipeline/transfers.hpp"
#include "workloads/sharding/step_plans.hpp"

namespace stepsim {
namespace {

// Ranks of different stages are never folded together.
Machinery machinery_of_stages(const Cluster& cluster, const Mesh& mesh) {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15ULL;
  Machinery machinery = machinery_of(cluster);
  machinery.kinds.resize(mesh.ranks, 0);
  for (Rank rank = 0; rank < mesh.ranks; ++rank)
    machinery.kinds[rank] = machinery.kinds[rank] * odd + rank / mesh.in_stage();
  return machinery;
}

Traffic planned(const Cluster& cluster, const TrafficNeeds& needs, Folding folding) {
  Plans plans = step_plans(cluster, needs);
  const PipelineParallel& pipeline = needs.strategy.pipeline_parallel;
  if (pipeline.size == 1) return make_traffic(machinery_of(cluster), plans.take(), folding);
  plan_stages(plans, cluster, needs.mesh, pipeline.way());
  return make_traffic(machinery_of_stages(cluster, needs.mesh), plans.take(), folding);
}

struct KeptTraffic {
  Cluster cluster;
  TrafficNeeds needs;
  Traffic traffic;  // folded
};
constexpr std::size_t most_kept = 4;

}  // namespace

Traffic step_traffic(const RankPart& rank, Folding folding) {
  static std::list<KeptTraffic> kept;  // asked for last, first
  const Cluster& cluster = rank.input.cluster;
  TrafficNeeds needs = needs_of(rank);
  if (folding == Folding::off) return planned(cluster, needs, folding);  // too large to keep
  const auto known = std::ranges::find_if(kept, [&](const KeptTraffic& each) {
    return each.needs == needs && carry_alike(each.cluster, cluster);
  });
  if (known != kept.end()) {
    kept.splice(kept.begin(), kept, known);
  } else {
    Traffic traffic = planned(cluster, needs, folding);
    kept.push_front({cluster, std::move(needs), std::move(traffic)});
    if (kept.size() > most_kept) kept.pop_back();
  }
  return kept.front().traffic;
}

}  // namespace stepsim
