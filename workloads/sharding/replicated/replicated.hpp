// In stages 0 to 2 every rank holds all parameters. Stage 0 updates all of them on every rank,
// stages 1 and 2 a part each, which is then gathered.
#pragma once

#include "workloads/sharding/replicated/gradient_buffer.hpp"
#include "workloads/sharding/replicated/reduced_buckets.hpp"
#include "workloads/sharding/scheme.hpp"

namespace stepsim {

// This is DeepSpeed's scheme.
struct Replicated {
  using Schedule = ReducedBuckets;
  static SchemeFacts facts(const Strategy& strategy);
  static std::vector<KernelRow> gradient_kernels(const StepInput&, const Unit&) { return {}; }
  static void hold(Holdings& holdings, const RankPart& rank);
  static void set_up(Setup& setup);
  static double gradients_at_update(const RankPart& rank);
};

// Megatron's holds the same, but for one buffer of all gradients.
struct Distributed {
  using Schedule = GradientBuffer;
  static SchemeFacts facts(const Strategy& strategy);
  static std::vector<KernelRow> gradient_kernels(const StepInput& input, const Unit& unit);
  static void hold(Holdings& holdings, const RankPart& rank) { Replicated::hold(holdings, rank); }
  static void set_up(Setup& setup) { Replicated::set_up(setup); }
  static double gradients_at_update(const RankPart& rank) {
    return Replicated::gradients_at_update(rank);
  }
};

}  // namespace stepsim
