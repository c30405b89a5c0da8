// This is one weight sync as a program: sharded learners gather, the first of them sends to all
// engines.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/op_graph.hpp"
#include "workloads/grpo/engine.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/grpo.hpp"
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

// This is the cost without waiting for engines; the wait for iterations under way comes on top.
struct SyncCost {
  Seconds gather;    // before anything is sent, while the engines generate
  Seconds send;      // the rest: gathers between sends, calls, broadcasts, loading
  double calls = 0;  // one after the other
  Seconds busy;      // more for each of them while engines have work
  Seconds window;    // of a call: engines go on with theirs, until the broadcast stops them
  Seconds pause;     // engines are put to sleep and woken
};

// Returns how long a sync waits for engines. They begin nothing new while weights change, so they
// run dry; from then on calls are quick. With one call for all tensors the wait is the iteration
// under way.
double wait_for_engines(SyncProtocol protocol, const SyncCost& cost,
                        std::span<const Engine> engines);

// Returns by how much an iteration takes longer when engines work between broadcasts only.
double slowed_by(const SyncCost& cost, double sending);

}  // namespace stepsim
