// This predicts the time that saving and resuming cost a run, and failures. Saving and resuming are
// programs of their own.
#pragma once

#include <optional>
#include <string>

#include "analysis/memory_timeline.hpp"
#include "analysis/studies/predict/goodput.hpp"
#include "scenarios/read/run_length.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"
#include "workloads/sharding/saving.hpp"

namespace stepsim {

struct SavingCost {
  Checkpoint files;
  Seconds time;      // training waits for one
  Seconds behind{};  // beyond that, until its files are written
  double count = 0;  // of the run; 0: the run has no length
};

struct EvaluationCost {
  Seconds pass;       // over one micro-batch
  double passes = 0;  // of one evaluation; 0: nobody says how many rows there are
  double count = 0;   // evaluations of the run; 0: the run has no length

  Seconds time() const { return pass * passes; }
};

struct ResumingCost {
  double bytes = 0;    // read by all ranks together
  double skipped = 0;  // micro-batches of each rank
  Seconds time;        // until the first step begins, the loading of the model left out
};

// A GPU or link is lost during the step: this is what lies between that and the same place again.
struct LossCost {
  std::string what{};      // "GPU 3"
  Seconds at{};            // of the step
  bool saved = false;      // there are checkpoints; else the job begins anew
  Seconds resume{};        // until the last one is read
  double steps_again = 0;  // since that one, in the mean
  Seconds step{};          // that nothing is lost in
};

struct WholeJob {
  std::optional<RunLength> length;
  std::optional<SavingCost> saving;
  std::optional<EvaluationCost> evaluation;
  std::optional<ResumingCost> resuming;
  std::optional<Goodput> goodput;  // nothing: nothing fails
  Seconds wall{};  // of the whole job, or of what is left when it is resumed; 0: it has no length
};
WholeJob whole_job(const Scenario& scenario, Seconds step, const Player& player = {});
std::optional<LossCost> loss_cost(const Scenario& scenario, const Player& player = {});

}  // namespace stepsim
