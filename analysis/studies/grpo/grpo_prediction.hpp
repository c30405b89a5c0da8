// This predicts what the steps of a GRPO scenario take once they are steady, where that time goes,
// and whether it fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/grpo/grpo_costs.hpp"
#include "analysis/studies/grpo/grpo_memory.hpp"
#include "analysis/studies/predict/goodput.hpp"

namespace stepsim {

// Means over the steps behind the warm-up. The phases of a step follow each other, so they add up.
struct GrpoPhases {
  double wait = 0;           // learners have no batch
  double rewards = 0;        // found when all responses are there
  double compute = 0;        // learners' kernels and launches
  double communication = 0;  // gathers and reductions that nothing hides
  double optimizer = 0;
  double critic = 0;     // of PPO: values, its update, rewards of a model
  double reference = 0;  // a parked reference model comes from host memory
  double drain = 0;      // engines finish what they have before weights change
  double gather = 0;     // of a sync
  double broadcast = 0;
  double per_tensor = 0;  // calls, copies, bookkeeping
  double iterations = 0;  // of engines, that a sync waits for
  double parking = 0;     // of colocated learners' states
  double pause = 0;
};
// A phase has a name in words and one for machines.
struct PhaseSpec {
  std::string_view key, text;
  double GrpoPhases::*seconds;
};
std::span<const PhaseSpec> phase_specs();

// These are the losses to engines that fail alone, in the steps that are measured.
struct EngineLosses {
  std::int64_t seen = 0;  // failures in the whole run
  double expected = 0;    // in the measured steps
  Seconds unbroken;       // a step, where none fails
};

struct GrpoPrediction {
  Placement placement;
  GrpoMemory memory;
  std::vector<std::string> warnings;
  // This is false when an engine cannot start: then nothing of what follows is known.
  bool ran = false;
  Seconds step_time;
  Seconds first_step;  // from the start of the first sync to the end of the first step
  Seconds start_up;    // until engines take prompts, before that
  Seconds wall;        // of the whole job; 0: its length is not given
  GrpoPhases phases;
  StepParts generation;           // of what learners wait, where they generate themselves
  double training = 0, sync = 0;  // s: of a step
  double responses_per_second = 0;
  double generated_per_second = 0;           // tokens
  double trained_per_second = 0;             // tokens with their prompts
  double learner_busy = 0, engine_busy = 0;  // share of the time
  // This is the share of the time in which the first learner's network card carries gathers,
  // reductions or broadcasts.
  double card_busy = 0;
  double running_sequences = 0;  // of an engine, mean over time
  double staleness = 0, most_stale = 0, mixed = 0, truncated = 0;
  double responses = 0, packs = 0, dropped_share = 0;  // of a step; share of its tokens
  double stale_share = 0, filtered_share = 0;          // of all tokens generated
  double preemptions = 0, recomputed = 0;              // of a step
  double most_cached = 0;                              // tokens, on one engine
  double given_up_share = 0;                           // of all tokens generated
  double gpu_hours_per_1000 = 0;                       // responses
  std::optional<Goodput> goodput;                      // nothing: no failures were asked for
  std::optional<EngineLosses> engine_losses;           // the same
  std::string bottleneck;
  GrpoRun run;
  TrainingParts training_parts;  // of the policy, in all steps
  TrainingParts critic_parts;    // of what is trained beside it
  SyncReplay sync_replay;
  PlayedBy played_by;  // the learners' step and the sync
  std::vector<NamedConstant> guesses;
};

// Predicts the job. Of the free causes those of training cost nothing in its replays, `generation`
// nothing in the engines' iterations, and `weight_sync` nothing in all but the waiting for
// iterations under way.
GrpoPrediction predict_grpo(const Scenario& scenario, const Replaying& how = {});

// Time and rates by the names that JSON and traces use: {"step_time_s", "...", 46.1, seconds}.
struct GrpoMetric {
  std::string name, meaning;
  double value = 0;
  Dimension dimension = Dimension::ratio;
};
std::vector<GrpoMetric> grpo_metrics(const GrpoPrediction& prediction);

}  // namespace stepsim
