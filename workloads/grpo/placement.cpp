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

Placement place(const Cluster& cluster, const Grpo& grpo) {
  Placement placement;
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
      if (gpu < learn) placement.learners.push_back(node * gpus + gpu);
      if (gpu >= learn || colocated) free.push_back(node * gpus + gpu);
    }
    // An engine of several nodes has all of each.
    if (each > gpus && !colocated && learn > 0) {
      free.resize(free.size() - (gpus - learn));
      placement.stranded += gpus - learn;
    }
    while (free.size() >= each) take();
    if (each <= gpus) strand();
  }
  strand();
  return placement;
}

Cluster learner_cluster(const Cluster& cluster, const Grpo& grpo) {
  Cluster part = cluster;
  if (grpo.layout == GrpoLayout::colocated) return part;
  part.nodes = static_cast<std::uint32_t>(
      std::count_if(grpo.learners.begin(), grpo.learners.end(), [](auto n) { return n > 0; }));
  part.gpus_used = *std::max_element(grpo.learners.begin(), grpo.learners.end());
  std::vector<std::uint32_t> counts;
  std::copy_if(grpo.learners.begin(), grpo.learners.end(), std::back_inserter(counts),
               [](auto n) { return n > 0; });
  const bool even =
      std::all_of(counts.begin(), counts.end(), [&](auto n) { return n == part.gpus_used; });
  if (!even) part.uneven = std::move(counts);
  return part;
}

}  // namespace stepsim
