// A placement says which GPUs learn and which generate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/grpo/grpo.hpp"

namespace stepsim {

struct Placement {
  Group learners;                   // ranks; the first one sends the weights
  Group critic, reference, reward;  // that have GPUs of their own: the last ones of the cluster
  std::vector<Group> engines;       // ranks of each
  std::uint32_t stranded = 0;       // GPUs that belong to neither
  std::uint32_t most_engines = 0;   // that find room beside the learners
};
Placement place(const Cluster& cluster, const Grpo& grpo);

// `[1]` stands for every node; what is missing at the end has none.
std::vector<std::uint32_t> learners_by_node(const std::vector<std::int64_t>& list,
                                            std::uint32_t nodes);

// The nodes that learn, with only those GPUs that do.
Cluster learner_cluster(const Cluster& cluster, const Grpo& grpo);

// The nodes that these ranks are on, with only their GPUs.
Cluster cluster_of(const Cluster& cluster, const Group& ranks);

// Returns the first so many GPUs, node by node.
std::vector<std::uint32_t> first_gpus(const Cluster& cluster, std::uint32_t count);

// Ranks among these that share one copy of the states: those of a tensor or pipeline do not.
std::int64_t sharing_states(const Strategy& strategy, std::int64_t ranks);

// Returns the largest secondary partition, up to the one that is asked for, that so many ranks can
// be divided into.
std::int64_t secondary_partition(std::int64_t asked, std::int64_t sharing);

}  // namespace stepsim
