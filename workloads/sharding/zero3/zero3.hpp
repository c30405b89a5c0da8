// In stage 3 every module gathers its parameters before it runs and gives them up after.
#pragma once

#include "workloads/sharding/scheme.hpp"
#include "workloads/sharding/zero3/schedule.hpp"

namespace stepsim {

struct Zero3 {
  using Schedule = Zero3Schedule;
  static SchemeFacts facts(const Strategy& strategy);
  static std::vector<KernelRow> gradient_kernels(const StepInput&, const Unit&) { return {}; }
  static void hold(Holdings& holdings, const RankPart& rank);
  static void set_up(Setup& setup);
  // They are always there.
  static double gradients_at_update(const RankPart&) { return 0; }
};

}  // namespace stepsim
