#include "workloads/strategy/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stepsim {
namespace {

// Takes so many of the ranks that others have left, and returns how many it took; 1 where that does
// not come out even.
Rank take(Rank& left, std::int64_t wanted) {
  if (wanted <= 1 || left % wanted != 0) return 1;
  left /= static_cast<Rank>(wanted);
  return static_cast<Rank>(wanted);
}

}  // namespace

Rank wanted_shard(const Strategy& strategy, const Cluster& cluster) {
  const FsdpKeys& keys = strategy.fsdp;
  const std::int64_t ranks =
      std::max<std::int64_t>(1, cluster.ranks() / strategy.pipeline_parallel.size /
                                    strategy.tensor_parallel.size / repeats_of(strategy));
  if (strategy.distributed.shard > 0) return static_cast<Rank>(strategy.distributed.shard);
  if (strategy.sharding != Sharding::hsdp) return static_cast<Rank>(ranks);
  if (keys.shard > 0) return static_cast<Rank>(keys.shard);
  if (keys.replicate > 0)
    return static_cast<Rank>(std::max<std::int64_t>(1, ranks / keys.replicate));
  return static_cast<Rank>(
      std::max<std::int64_t>(1, cluster.gpus_per_node() / strategy.tensor_parallel.size));
}

Mesh mesh_of(const Strategy& strategy, const Cluster& cluster) {
  Mesh mesh;
  mesh.ranks = cluster.ranks();
  Rank left = mesh.ranks;
  mesh.stages = take(left, strategy.pipeline_parallel.size);
  mesh.tensor = take(left, strategy.tensor_parallel.size);
  mesh.repeats = take(left, repeats_of(strategy));
  mesh.shard = left;
  if (const Rank wanted = wanted_shard(strategy, cluster); left % wanted == 0) mesh.shard = wanted;
  mesh.replicas = left / mesh.shard;
  Rank dealt = mesh.in_stage() / mesh.replicas;
  if (mesh.repeats > 1)
    take(dealt, strategy.tensor_parallel.size);
  else
    mesh.expert_tensor = take(dealt, expert_tensor_of(strategy));
  mesh.experts = take(dealt, strategy.experts.parallel);
  mesh.expert_shard = dealt;
  const Rank in_node = std::max<Rank>(1, cluster.gpus_per_node() / mesh.expert_tensor);
  if (mesh.experts % in_node == 0) mesh.expert_nodes = mesh.experts / in_node;
  mesh.ulysses = take(left, strategy.sequence_parallel.ulysses);
  mesh.ring = take(left, strategy.sequence_parallel.ring);
  return mesh;
}

std::int64_t whole_rows(const Strategy& strategy, std::int64_t tokens) {
  const SequenceParallel& s = strategy.sequence_parallel;
  const std::int64_t pieces = std::max<std::int64_t>(
      1, std::lcm(strategy.tensor_parallel.size * s.ulysses, s.ring > 1 ? 2 * s.ring : 1));
  return (tokens + pieces - 1) / pieces * pieces;
}

bool quantizes_gradients(const Strategy& strategy, const Cluster& cluster) {
  const Mesh mesh = mesh_of(strategy, cluster);
  const Rank in_node = cluster.gpus_per_node() / mesh.tensor;
  return strategy.zero.quantized_gradients && strategy.sharding == Sharding::zero3 &&
         cluster.nodes > 1 && in_node > 1;
}

std::string to_text(const Mesh& mesh) {
  std::string text;
  const auto add = [&](std::string_view name, Rank size) {
    if (size > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, size);
  };
  if (mesh.data() != mesh.ranks || mesh.replicas > 1) {
    add("data", mesh.data());
    add("CP", mesh.ring);
    add("Ulysses", mesh.ulysses);
    add("same rows", mesh.repeats);
    add("TP", mesh.tensor);
    add("PP", mesh.stages);
    if (mesh.experts > 1 && mesh.tensor > 1 && mesh.repeats == 1)
      text += fmt::format("; experts: EP {} x TP {} x data {}", mesh.experts, mesh.expert_tensor,
                          mesh.expert_shard * mesh.replicas);
    if (mesh.replicas > 1)
      text += fmt::format("; {} copies of {} shards", mesh.replicas, mesh.shard);
  }
  return text;
}

std::vector<Group> strided_groups(Rank ranks, Rank size, Rank stride) {
  std::vector<Group> groups(ranks / size);
  for (Rank rank = 0; rank < ranks; ++rank)
    groups[rank / (size * stride) * stride + rank % stride].push_back(rank);
  return groups;
}

}  // namespace stepsim
