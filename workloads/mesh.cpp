#include "workloads/mesh.hpp"

#include <algorithm>

namespace stepsim {

Rank wanted_shard(const Strategy& strategy, const Cluster& cluster) {
  const FsdpKeys& keys = strategy.fsdp;
  const std::int64_t ranks = cluster.ranks();
  if (strategy.sharding != Sharding::hsdp) return cluster.ranks();
  if (keys.shard > 0) return static_cast<Rank>(keys.shard);
  if (keys.replicate > 0)
    return static_cast<Rank>(std::max<std::int64_t>(1, ranks / keys.replicate));
  return cluster.gpus_per_node();
}

Mesh mesh_of(const Strategy& strategy, const Cluster& cluster) {
  Mesh mesh;
  mesh.ranks = mesh.shard = cluster.ranks();
  if (const Rank wanted = wanted_shard(strategy, cluster); mesh.ranks % wanted == 0)
    mesh.shard = wanted;
  mesh.replicas = mesh.ranks / mesh.shard;
  return mesh;
}

std::vector<Group> strided_groups(Rank ranks, Rank size, Rank stride) {
  std::vector<Group> groups(ranks / size);
  for (Rank rank = 0; rank < ranks; ++rank)
    groups[rank / (size * stride) * stride + rank % stride].push_back(rank);
  return groups;
}

}  // namespace stepsim
