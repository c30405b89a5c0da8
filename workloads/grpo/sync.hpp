// This is one weight sync as a program: sharded learners gather, the first of them sends to all
// engines.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/op_graph.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/placement.hpp"
#include "workloads/model/model.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {

// This is what a GPU that learns and generates in turn copies and maps at its turns, in bytes.
struct TurnBytes {
  double states = 0;      // of the learner: out before weights are sent, in again behind
  double parameters = 0;  // out when they have been sent
  double weights = 0;     // that wait in host memory while the engine sleeps
  double mapped = 0;      // memory that the engine takes and gives back
};

struct SyncInput {
  const Cluster& cluster;
  const Model& model;
  const EngineStack& stack;
  const Grpo& grpo;
  const Placement& placement;
  Group holders{};  // learners that have all tensors among them, each a part of every one
  TurnBytes turn{};
  std::vector<std::vector<double>> adapters{};  // [layer]: bytes of each tensor, where they travel

  bool sharded() const { return holders.size() > 1; }
};

// The program has embedding, head and these layers; layers follow each other without overlap, so
// the time of others is the difference that one of their kind makes. Buckets reach over layers: all
// are written.
struct SyncProgram {
  Traffic traffic;
  OpGraph graph;
  Rank root{};      // its lane
  OpId gathered{};  // all parameters are on every learner; later operations send
};
SyncProgram build_sync(const SyncInput& input, std::span<const std::int64_t> layers);

// These operations of a sync have names of their own: the engine falls asleep or wakes; a
// checkpoint becomes a file; weights are on their way.
inline constexpr std::string_view sleep_name = "sleep", wake_name = "wake", written_name = "write";
inline constexpr std::array<std::string_view, 2> sent_names{"fill", "broadcast"};

// A parked reference model comes to every learner, and a policy that gives it its place goes and
// comes back: so many bytes each.
SyncProgram build_return(const SyncInput& input, double bytes);

std::int64_t tensors_of(const Model& model);

// Returns the bytes of tensors that are sent together.
double bucket_bytes(const SyncInput& input);

// Returns what the engines' broadcast is made of, for a test to count.
CollectivePlan broadcast_plan(const SyncInput& input);

}  // namespace stepsim
