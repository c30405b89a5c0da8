// This is PyTorch's fully sharded data parallelism, and its hybrid with several copies of the
// shards.
#pragma once

#include "workloads/sharding/fsdp/groups.hpp"
#include "workloads/sharding/scheme.hpp"

namespace stepsim {

struct FullySharded {
  using Schedule = FullyShardedGroups;
  static SchemeFacts facts(const Strategy& strategy);
  static std::vector<KernelRow> gradient_kernels(const StepInput&, const Unit&) { return {}; }
  static void hold(Holdings& holdings, const RankPart& rank);
  static void set_up(Setup& setup);
  static double gradients_at_update(const RankPart& rank);
};

}  // namespace stepsim
