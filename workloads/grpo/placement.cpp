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
  const std::uint32_t gpus = cluster.gpus_per_node();
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    const std::uint32_t learn =
        colocated ? gpus : (node < grpo.learners.size() ? grpo.learners[node] : 0);
    for (std::uint32_t gpu = 0; gpu < std::min(learn, gpus); ++gpu)
      placement.learners.push_back(node * gpus + gpu);
    const std::uint32_t first = colocated ? 0 : std::min(learn, gpus);
    const std::uint32_t here = (gpus - first) / grpo.tensor_parallel;
    placement.most_engines += here;
    placement.stranded += gpus - first - here * grpo.tensor_parallel;
    for (std::uint32_t e = 0; e < here; ++e) {
      if (grpo.engines && placement.engines.size() >= *grpo.engines) {
        if (!colocated) placement.stranded += grpo.tensor_parallel;
        continue;
      }
      Group& group = placement.engines.emplace_back();
      for (std::uint32_t t = 0; t < grpo.tensor_parallel; ++t)
        group.push_back(node * gpus + first + e * grpo.tensor_parallel + t);
    }
  }
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
