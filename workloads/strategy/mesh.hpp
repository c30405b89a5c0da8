// A mesh says how the ranks of a job are dealt out to the ways of splitting work: which of them
// hold the same, which share a copy, which pass what on.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// These are the sizes of the groups. Ranks count up inside a tensor-parallel group first, then
// among those that repeat the same rows, then among those that exchange the heads of a sequence,
// then round the ring that passes it on, then among those that hold different rows, then from one
// pipeline stage to the next.
struct Mesh {
  Rank ranks = 1, stages = 1;
  Rank tensor = 1;    // ranks that share every layer
  Rank ulysses = 1;   // ranks that share a sequence and swap it for heads
  Rank ring = 1;      // ranks that share a sequence and pass keys and values round
  Rank repeats = 1;   // ranks that go through the same rows with different experts
  Rank shard = 1;     // ranks that share one copy of parameters, gradients or optimizer states
  Rank replicas = 1;  // copies of that: hybrid sharding has several
  // These deal the same ranks out once more, for experts: those that share each of them, those that
  // hold different ones, and those that share one copy of their states.
  Rank expert_tensor = 1, experts = 1, expert_shard = 1;
  Rank expert_nodes = 1;  // over which those that hold different ones are spread

  Rank sequence() const { return ulysses * ring; }
  Rank in_stage() const { return ranks / stages; }
  Rank data() const { return in_stage() / tensor / repeats / sequence(); }  // of different rows
  Rank apart() const { return tensor * repeats; }  // so far ranks of a shard are from each other
  // Returns how far ranks are from each other that hold different experts.
  Rank beside() const { return repeats > 1 ? tensor : expert_tensor; }

  friend bool operator==(const Mesh&, const Mesh&) = default;
};
// A size that does not divide the ranks is the reader's to reject; here it counts as 1.
Mesh mesh_of(const Strategy& strategy, const Cluster& cluster);
// Ranks that are to share one copy, whether or not that divides them.
Rank wanted_shard(const Strategy& strategy, const Cluster& cluster);

// The next length of a row that all who share it can divide among them.
std::int64_t whole_rows(const Strategy& strategy, std::int64_t tokens);

// DeepSpeed's quantised gradients are for several nodes with several ranks each.
bool quantizes_gradients(const Strategy& strategy, const Cluster& cluster);

// Writes "data 16 x tensor 4"; "" when there is nothing but data.
std::string to_text(const Mesh& mesh);

// All ranks in groups of `size`, whose members are `stride` apart.
std::vector<Group> strided_groups(Rank ranks, Rank size, Rank stride);

}  // namespace stepsim
