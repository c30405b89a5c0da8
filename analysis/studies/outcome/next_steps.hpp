// This computes what to do next: changes that make a step faster, and changes that make it fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/outcome/metrics.hpp"
#include "analysis/studies/outcome/remedies.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct NextStep {
  std::string change;  // "strategy.zero_optimization.sub_group_size: 1e9"
  std::vector<Setting> settings;
  double gain = 0;      // of tokens per second: 0.25 is a quarter more
  double needed = 0;    // bytes of a GPU
  Fit fit = Fit::fits;  // of what was to fit, in the order of the program
  Outcome outcome;
};

struct NextStepQuestion {
  Catalogue data;
  std::string source;  // path or name
  std::vector<Setting> settings;
  const Scenario& scenario;
  std::size_t workers = usual_workers();
  Progress progress{};
  std::optional<Outcome> stated{};  // of the scenario as it is, where that is known
  bool all = false;                 // however long the step is; else the most promising are tried
  std::size_t events = 0;           // of a GRPO job's own run, where it is known
};

struct FasterSteps {
  std::vector<NextStep> steps;  // that fit, the fastest first; of several values of a key the best
  std::size_t tried = 0;
  std::size_t left_out = 0;  // the step is so long that not all were tried
  bool fits = true;          // the scenario as it is; else nothing was tried
};

// Finds steps on the same rows and the same GPUs that are faster.
FasterSteps faster_steps(const NextStepQuestion& question, std::size_t most);

// These changes make a scenario fit that does not, each with its step: single changes; where there
// are none, pairs of them; and more nodes. Those with the most tokens per second and GPU come
// first. A change whose step would need more over time than in the order of the program is left
// out.
struct FittingSteps {
  std::vector<NextStep> single, pairs, nodes;
};
FittingSteps fitting_steps(const NextStepQuestion& question);

}  // namespace stepsim
