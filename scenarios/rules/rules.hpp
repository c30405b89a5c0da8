// These rules say which parts of a scenario go together, and how far a result may be trusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
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

// Returns the matrices of all layers, as the model's own code calls them: "self_attn.q_proj".
std::vector<std::string> matrices_of(const Model& model);

// Notes each name of `modules` that no matrix of any layer has, and adapters that stand beside no
// matrix.
void check_adapters(const Table& strategy, const Scenario& scenario);

// A name that is not in the catalogue is noted already; rules that need it are left out.
struct Known {
  bool cluster = false, model = false;
};

// `moe` is the table of a strategy.
void check_experts(const Table& moe, const StepSplit& sharing, Known known);

// Notes at `offload`, the table of that name, what DeepSpeed rejects and what is not modelled.
// `found`: the scenario has its model and its cluster.
void check_offload(const Table& offload, const Scenario& scenario, bool found);

// Notes at `strategy`, the table of that name, whatever does not come out even or together.
void check_pipeline(const Table& strategy, const StepSplit& sharing);

// Returns what is allowed and wasteful.
std::vector<std::string> pipeline_notes(const PipelineParallel& pipeline, const Job& job);

// Returns a line for each: a result is still given, and this is how far it may be trusted.
std::vector<std::string> mismatches(const Scenario& scenario);

// Rows that are not packed, of which nothing says how long they are: they count as full.
bool has_open_rows(const Scenario& scenario);

struct ComparedScenario {
  std::string name;  // "A"
  const Scenario& scenario;
};
// Writes "peft_use_dora (not in A, true in B): a norm over each matrix", a line for each.
std::vector<std::string> unknown_differences(const ComparedScenario& a, const ComparedScenario& b);

}  // namespace stepsim
