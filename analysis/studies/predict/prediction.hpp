// A prediction is what a scenario's step takes and needs.
#pragma once

#include <optional>
#include <vector>

#include "analysis/breakdown.hpp"
#include "analysis/energy.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "analysis/studies/predict/saving.hpp"
#include "scenarios/read/run_length.hpp"
#include "scenarios/scenario.hpp"
#include "workloads/step/model_flops.hpp"

namespace stepsim {

struct Prediction {
  Seconds step_time;
  double tokens_per_second_per_gpu = 0;
  ModelFlops flops;        // of a GPU and step
  double utilisation = 0;  // of the bf16 peak: what the result asks for, and causal attention
  double utilisation_in_rows = 0;  // the same as if each token saw its whole row
  double iterations_per_second = 0;
  std::optional<RunLength> length;
  std::optional<SavingCost> saving;
  std::optional<EvaluationCost> evaluation;
  std::optional<ResumingCost> resuming;
  std::optional<Goodput> goodput;  // nothing: nothing fails
  std::optional<LossCost> loss;    // then the step's time is the one until it is lost
  Seconds wall;  // of the whole job, or of what is left when it is resumed; 0: no length is given
  Breakdown breakdown;
  std::optional<Energy> energy;  // of a step; none: a file does not say what its part draws
  Joules job_energy;             // of `wall`; 0: one of both is not known
  Footprint memory;
  std::vector<NamedConstant> guesses;
  std::size_t operations = 0;  // of the step
  PlayedBy played_by;
  Run run;  // empty unless it is asked for
};

// `tokens` are those of a step, of all ranks.
double tokens_per_second_per_gpu(const Scenario& scenario, double tokens, Seconds step_time);

// Returns the memory as the replayed step holds it; where its rows are shorter than they may be, as
// full rows need it.
Footprint memory_of(const Scenario& scenario, const StepProgram& program, const Trace& trace);

// These figures are the part of a prediction that studies need of each of many steps.
struct StepFigures {
  Seconds step_time;
  double tokens_per_second_per_gpu = 0;
  double memory = 0;  // bytes of a GPU, with slack and libraries; 0: not asked for
  Seconds wall;
  Joules energy, job_energy;  // of a step and of `wall`; 0: not known, or not asked for
};
enum class Asked : std::uint8_t { times, everything };
// Finds the same figures as predict() for less work: to the last bit those of the own engine, and
// to a billionth those of SimGrid.
StepFigures step_figures(const Scenario& scenario, CauseSet free, Asked asked);

// A run that is kept has all micro-batches; for figures, a few of those that are alike are
// replayed.
enum class Kept : std::uint8_t { figures, run };
Prediction predict(const Scenario& scenario, Kept kept, const Replaying& how = {});

}  // namespace stepsim
