// These rules say what has to divide what, so that several ranks can share a model.
#pragma once

#include <optional>
#include <string>

#include "sim/base/config.hpp"
#include "topology/cluster.hpp"
#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/stack.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Several ranks share this step.
struct StepSplit {
  const Model& model;
  const Cluster& cluster;
  const Strategy& strategy;
  const Job& job;
  const Stack& stack;
};

// Notes at `strategy`, the table of that name, whatever does not come out even.
void check_parallel(const Table& strategy, const StepSplit& sharing);

// Why neither a sequence nor, with more than one mixer a layer, its heads can be divided.
std::optional<std::string> why_undivided(const Model& model);

}  // namespace stepsim
