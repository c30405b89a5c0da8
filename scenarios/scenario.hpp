// A scenario is a user's file: which model, on which cluster, under which stack, job and strategy.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/assumption.hpp"
#include "scenarios/keys/observation.hpp"
#include "sim/base/config.hpp"
#include "topology/catalog.hpp"
#include "topology/cluster.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/model/model.hpp"
#include "workloads/program/step_input.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/stack.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// A key that was said, as YAML in one line, and where.
struct SaidKey {
  std::string path;  // "strategy.offload.ratio"
  std::string text;
  Origin origin;
};

// A key of another program's file that moves time or memory and is not modelled.
struct UnmodelledKey {
  std::string key, value, why;
  bool needs_memory = false;  // what is counted is too little
};

struct Scenario {
  Catalogue data;  // that it was read with
  std::string name;
  std::string text;  // as read
  Model model;
  Cluster cluster;
  Stack stack;
  Job job;
  Strategy strategy;
  std::optional<Optimizer> smaller_optimizer;  // that would need less memory
  std::optional<Grpo> grpo;                    // job.method: grpo
  std::optional<EngineStack> engine;           // with it
  std::string family;                          // runs that are alike, for a table of errors
  std::optional<Observation> measured, estimated;
  std::vector<NamedConstant> constants;  // everything a prediction rests on
  std::vector<std::string> notes;        // what was read and makes no difference
  std::vector<Assumption> assumptions;   // what a file of another program leaves open
  std::vector<UnmodelledKey> unmodelled;
  std::vector<std::string> files;  // read beside it, outside the catalogue
  std::vector<SaidKey> said;       // of one key the first one stands
};

// Returns what its training step is made from; it refers to the scenario.
inline StepInput step_input(const Scenario& scenario) {
  return {scenario.cluster,  scenario.model, scenario.stack,
          scenario.strategy, scenario.job,   &scenario.data};
}

// This is a change from the command line: {"strategy.zero", "2"}.
using Setting = std::pair<std::string, std::string>;

}  // namespace stepsim
