#include "workloads/grpo/placement.hpp"

#include <algorithm>
#include <iterator>

namespace stepsim {

std::vector<std::uint32_t> learners_by_node(const std::vector<std::int64_t>& list,
                                            std::uint32_t nodes) {
  std::vector<std::uint32_t> counts(nodes, 0);
  if (list.size() == 1 && list.front() == 1) {
    std::fill(counts.begin(), counts.end(), 1);
    return counts;
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(list.size(), nodes); ++i)
    counts[i] = static_cast<std::uint32_t>(list[i]);
  return counts;
}

std::vector<std::uint32_t> first_gpus(const Cluster& cluster, std::uint32_t count) {
  std::vector<std::uint32_t> counts(cluster.nodes, 0);
  for (std::uint32_t& here : counts) {
    here = std::min(count, cluster.gpus_per_node());
    count -= here;
  }
  return counts;
}

namespace {

// Places models on the cluster's last GPUs, in this order.
void place_models(const Cluster& cluster, const OwnGpus& own, Placement& placement) {
  Rank next = cluster.ranks() - std::min(cluster.ranks(), own.all());
  const auto take = [&](Group& group, std::uint32_t count) {
    while (group.size() < count && next < cluster.ranks()) group.push_back(next++);
  };
  take(placement.critic, own.critic);
  take(placement.reference, own.reference);
  take(placement.reward, own.reward);
}

}  // namespace

Placement place(const Cluster& cluster, const Grpo& grpo) {
  Placement placement;
  place_models(cluster, grpo.own, placement);
  const Rank free_end = cluster.ranks() - std::min(cluster.ranks(), grpo.own.all());
  const std::uint32_t gpus = cluster.gpus_per_node(), each = grpo.tensor_parallel;
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  Group free;
  const auto take = [&] {
    const auto end = free.begin() + each;
    ++placement.most_engines;
    if (!grpo.engines || placement.engines.size() < *grpo.engines)
      placement.engines.emplace_back(free.begin(), end);
    else if (!colocated)
      placement.stranded += each;
    free.erase(free.begin(), end);
  };
  const auto strand = [&] {
    placement.stranded += static_cast<std::uint32_t>(free.size());
    free.clear();
  };
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    const std::uint32_t listed = node < grpo.learners.size() ? grpo.learners[node] : 0;
    const std::uint32_t learn = colocated ? gpus : std::min(listed, gpus);
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      if (node * gpus + gpu >= free_end) continue;
      if (gpu < learn) placement.learners.push_back(node * gpus + gpu);
      if (gpu >= learn || colocated) free.push_back(node * gpus + gpu);
    }
    // An engine of several nodes has all of each.
    if (each > gpus && !colocated && learn > 0) {
      const std::size_t rest = std::min<std::size_t>(free.size(), gpus - learn);
      free.resize(free.size() - rest);
      placement.stranded += static_cast<std::uint32_t>(rest);
    }
    while (free.size() >= each) take();
    if (each <= gpus) strand();
  }
  strand();
  return placement;
}

Cluster learner_cluster(const Cluster& cluster, const Grpo& grpo) {
  if (grpo.layout == GrpoLayout::colocated && grpo.own.all() == 0) return cluster;
  return cluster_of(cluster, place(cluster, grpo).learners);
}

Cluster cluster_of(const Cluster& cluster, const Group& ranks) {
  Cluster part = cluster;
  if (ranks.empty()) return part;
  std::vector<std::uint32_t> by_node(cluster.nodes, 0), counts;
  for (const Rank rank : ranks) ++by_node[rank / cluster.gpus_per_node()];
  part.placement.clear();
  if (part.routes) part.routes->nodes.clear();
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    if (by_node[node] == 0) continue;
    counts.push_back(by_node[node]);
    if (!cluster.placement.empty()) part.placement.push_back(cluster.place(node));
    if (part.routes) part.routes->nodes.push_back(cluster.routes->node(node));
  }
  part.nodes = static_cast<std::uint32_t>(counts.size());
  part.gpus_used = *std::max_element(counts.begin(), counts.end());
  const bool even =
      std::all_of(counts.begin(), counts.end(), [&](auto n) { return n == part.gpus_used; });
  if (!even) part.uneven = std::move(counts);
  if (cluster.speeds.empty()) return part;
  part.speeds.clear();
  for (const Rank rank : ranks) part.speeds.push_back(cluster.speeds[rank]);
  return part;
}

std::int64_t sharing_states(const Strategy& strategy, std::int64_t ranks) {
  const std::int64_t apart = strategy.tensor_parallel.size * strategy.pipeline_parallel.size;
  return std::max<std::int64_t>(1, ranks / apart);
}

std::int64_t secondary_partition(std::int64_t asked, std::int64_t sharing) {
  while (asked > 1 && sharing % asked != 0) --asked;
  return asked;
}

}  // namespace stepsim
