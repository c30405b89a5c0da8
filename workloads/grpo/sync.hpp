// One weight sync as a program: sharded learners gather, the first of them sends to all engines.
#pragma once

#include "sim/op_graph.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/placement.hpp"
#include "workloads/model/model.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {

struct SyncInput {
  const Cluster& cluster;
  const Model& model;
  const EngineStack& stack;
  const Grpo& grpo;
  const Placement& placement;
  std::size_t shards = 1;  // the first so many learners hold a part of every tensor each
  double parked = 0;       // bytes of each learner that wait in host memory between its turns

  bool sharded() const { return shards > 1; }
};

// Embedding, head and so many layers; equal layers follow each other without overlap, so the time
// of further ones is the difference that one makes. Buckets reach over layers: all are written.
struct SyncProgram {
  Traffic traffic;
  OpGraph graph;
  Rank root{};      // its lane
  OpId gathered{};  // all parameters are on every learner; later operations send
};
SyncProgram build_sync(const SyncInput& input, std::int64_t layers);

// A parked reference model comes to every learner: so many bytes each.
SyncProgram build_return(const SyncInput& input, double bytes);

std::int64_t tensors_of(const Model& model);

// Of tensors that are sent together.
double bucket_bytes(const SyncInput& input);

// What the engines' broadcast is made of, for a test to count.
CollectivePlan broadcast_plan(const SyncInput& input);

}  // namespace stepsim
