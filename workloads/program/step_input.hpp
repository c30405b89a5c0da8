// A training step is made from this.
#pragma once

#include "topology/catalog.hpp"
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
  const Catalogue* data = nullptr;  // keeps traffic for steps like this; null: nobody does
  std::int64_t written = 0;         // of a step's micro-batches only so many are written; 0: all

  std::int64_t micro_batches() const { return written > 0 ? written : job.accumulation; }
};

}  // namespace stepsim
