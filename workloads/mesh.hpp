// How the ranks of a job are dealt out to the ways of splitting work: which of them hold the same,
// which share a copy, which pass what on.
#pragma once

#include <vector>

#include "topology/cluster.hpp"
#include "workloads/collectives.hpp"
#include "workloads/strategy.hpp"

namespace stepsim {

// Sizes of the groups. Ranks count up inside a tensor-parallel group first, then among the ranks
// that share a sequence, then among those that hold different rows.
struct Mesh {
  Rank ranks = 1;
  Rank shard = 1;     // ranks that share one copy of parameters, gradients or optimizer states
  Rank replicas = 1;  // copies of that: hybrid sharding has several
};
// Ranks that are to share one copy, whether or not that divides them.
Rank wanted_shard(const Strategy& strategy, const Cluster& cluster);
// A size that does not divide the ranks is the reader's to reject; here it counts as 1.
Mesh mesh_of(const Strategy& strategy, const Cluster& cluster);

// All ranks in groups of `size`, whose members are `stride` apart.
std::vector<Group> strided_groups(Rank ranks, Rank size, Rank stride);

}  // namespace stepsim
