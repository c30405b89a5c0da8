// A GRPO job whose training step and sync cost what a test says; engines are a real machine's.
#pragma once

#include "topology/catalog.hpp"
#include "workloads/grpo/actors.hpp"

namespace stepsim {

struct GrpoBench {
  Cluster cluster;
  Model model;
  EngineStack stack;
  Grpo grpo;
  std::size_t engines = 4;
  std::size_t learners = 4;
  double training_seconds = 10;  // of a step, whatever its length
  SyncCost sync{.gather = {0.5}, .send = {1.5}, .busy = {}, .window = {}, .pause = {}};
  std::vector<Scorer> scorers{};
  TrainingCost beside{};
  bool whole_batches = false, in_step = false;
  EngineFailures failures{};
  std::vector<double> speeds{};
  double cache = 0;  // tokens; 0: what the machine has

  DecodeModel decode() const { return {cluster, model, stack, grpo}; }
  GrpoRun run() const;
};
// OLMo-2-32B on GH200 nodes, fixed lengths, nothing filtered.
GrpoBench grpo_bench();

// Seconds between the ends of two steps.
double mean_step(const GrpoRun& run, std::size_t from, std::size_t to);

}  // namespace stepsim
