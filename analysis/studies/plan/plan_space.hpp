// The space holds the ways to split a job over a machine: every combination of sizes that come out
// even, and of what the stack lets its users choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_plan.hpp"
#include "scenarios/scenario.hpp"
#include "topology/catalog.hpp"
#include "workloads/program/step_input.hpp"

namespace stepsim {

struct PlanQuestion {
  Catalogue data;
  std::string source;                // path or name of a scenario
  std::vector<Setting> settings;     // in all plans; what they say is not varied
  std::int64_t batch = 0;            // rows of an optimizer step; 0: those of the scenario
  std::vector<std::string> where;    // conditions that a plan meets
  std::vector<std::uint32_t> nodes;  // each of them; empty: as many as the scenario has
  bool wide_tensor = false;          // ranks that share a layer may be of several nodes
  bool of_model = false;             // the scenario stands for a model: its split is nobody's
};

// Each size is the number of ranks that share a layer, a sequence and so on; 1 means that none do.
struct PlanSizes {
  std::int64_t tensor = 1, context = 1, stages = 1;
  std::int64_t pieces = 1;  // that each stage has
  std::int64_t experts = 1, expert_tensor = 1;
  std::int64_t rows = 1;  // of a micro-batch
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
};

// Plans of one kind differ in sizes alone: all else is loaded once.
struct PlanKind {
  std::vector<Setting> settings;
  Scenario scenario;  // with every size 1, and with several holders of experts where `experts`
  bool experts = false;
  // This describes a plan of a GRPO job, whose plans are kinds: "4 learners on each of 2 nodes,
  // ..."
  std::string title{};
  bool fits = true;  // by its memory
};

struct JobPlan {
  std::size_t kind = 0;
  PlanSizes sizes;
  std::int64_t accumulation = 1;
};

struct PlanSpace {
  Scenario asked;  // as the scenario and the settings say it
  std::int64_t batch = 0;
  std::vector<PlanKind> kinds;
  std::vector<JobPlan> plans;
  // These are the plans as points of a sweep: one axis, a choice for each plan.
  SweepPlan sweep;
  std::vector<SweepValues> points;
  std::optional<std::size_t> own{};  // the plan that the scenario itself has
};

// Throws UserError when nothing comes out even, and says what would.
PlanSpace plan_space(const PlanQuestion& question);

// Returns what a plan's step is made from, without reading its file.
StepInput input_of(const PlanSpace& space, const JobPlan& plan);

// Writes "tensor 2 x stages 4 x data 8, micro-batch 1, zero 1, no recomputation".
std::string plan_text(const PlanSpace& space, const JobPlan& plan);

}  // namespace stepsim
