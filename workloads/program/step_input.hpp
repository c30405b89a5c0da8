// What a training step is made from.
#pragma once

#include "topology/cluster.hpp"
#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/stack.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

struct StepInput {
  const Cluster& cluster;
  const Model& model;
  const Stack& stack;
  Strategy strategy;
  Job job;
};

}  // namespace stepsim
