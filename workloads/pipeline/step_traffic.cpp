#include "workloads/pipeline/step_traffic.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>

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

// Returns whether folding comes out the same: every comparison of widths has its old answer, links
// that were alike still are, and no others are.
bool folds_alike(const FoldedBy& by, const Platform& platform, const Cluster& to) {
  if (!by.pure) return false;
  const auto width = capacities_of(to);
  for (const FoldedBy::Width& choice : by.widths) {
    double sum = 0;
    for (const LinkId other : choice.others) sum += choice.more * width(other).value;
    if ((sum <= width(choice.link).value) != choice.wider) return false;
  }
  std::map<double, double> before;  // by the width now
  for (std::size_t c = 0; c < by.links.size(); ++c) {
    const double now = width(by.links[c].front()).value;
    for (const LinkId other : by.links[c])
      if (width(other).value != now) return false;
    const double capacity = platform.links[c].capacity.value;
    if (before.try_emplace(now, capacity).first->second != capacity) return false;
  }
  return true;
}

// Returns the traffic that was planned and folded for `from`, which differs in rates alone; nothing
// where that is not enough.
std::optional<Traffic> retimed(Traffic traffic, const Cluster& from, const Cluster& to) {
  Folded& folded = traffic.folded;
  if (!folded.by || !folds_alike(*folded.by, folded.platform, to)) return std::nullopt;
  for (std::size_t c = 0; c < folded.platform.links.size(); ++c)
    folded.platform.links[c].capacity = capacity_of(to, folded.by->links[c].front());
  for (Device& device : folded.platform.devices) {
    device.compute_share = to.gpu.interference.compute.value.value;
    device.collective_share = to.gpu.interference.collective.value.value;
  }
  for (std::size_t plan = 0; plan < traffic.plans.size(); ++plan)
    if (!traffic.plans[plan].candidates.empty() &&
        !retime(traffic.plans[plan],
                std::span(folded.families)
                    .subspan(traffic.first_family[plan], traffic.plans[plan].candidates.size()),
                folded.platform, from, to))
      return std::nullopt;
  return traffic;
}

struct KeptTraffic {
  Cluster cluster;
  TrafficNeeds needs;
  Traffic traffic;  // folded
};
struct KnownTraffic {
  std::list<KeptTraffic> list;  // asked for last, first
};
constexpr std::size_t most_traffics = 4;

}  // namespace

Traffic step_traffic(const RankPart& rank, Folding folding) {
  const Cluster& cluster = rank.input.cluster;
  TrafficNeeds needs = needs_of(rank);
  const Catalogue* data = rank.input.data;
  if (folding == Folding::off || data == nullptr)  // unfolded it is too large to keep
    return planned(cluster, needs, folding);
  std::list<KeptTraffic>& kept = data->kept<KnownTraffic>().list;
  const auto known = std::ranges::find_if(kept, [&](const KeptTraffic& each) {
    return each.needs == needs && carry_alike(each.cluster, cluster);
  });
  if (known != kept.end()) {
    kept.splice(kept.begin(), kept, known);
  } else {
    for (const KeptTraffic& each : kept)
      if (each.needs == needs && wired_alike(each.cluster, cluster))
        if (auto traffic = retimed(each.traffic, each.cluster, cluster)) return std::move(*traffic);
    Traffic traffic = planned(cluster, needs, folding);
    kept.push_front({cluster, std::move(needs), std::move(traffic)});
    if (kept.size() > most_traffics) kept.pop_back();
  }
  return kept.front().traffic;
}

}  // namespace stepsim
