// These write what `run` says of a training step.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/job_cost.hpp"
#include "cli/result_kinds.hpp"
#include "scenarios/foreign/logs/trainer_log.hpp"

namespace stepsim {

// These extras stand beside a prediction, if somebody asked for them.
struct RunExtras {
  std::optional<Interval> interval;
  std::optional<FasterSteps> faster;
  std::optional<FittingSteps> fitting;
  Rates rates;
  std::optional<TrainerLog> log;  // of the real run
  bool energy = false;            // by cause
};

// Says what is trained, where, and with what: "llama-3.2-3b on 1 x mi300x-8, Megatron".
std::string place_text(const Scenario& scenario);
JobTime job_time_of(const Scenario& scenario, const Prediction& prediction);
std::string run_text(const Scenario& scenario, const Prediction& prediction,
                     const RunExtras& extras);
// Says what to change next, which takes longer to find than the rest.
std::string changes_text(const RunExtras& extras);
// Writes the answer alone, in a line.
std::string brief_text(const Prediction& prediction, const std::optional<Interval>& interval);
// Writes " (likely 716 ms to 827 ms)".
std::string likely_text(const std::optional<Interval>& interval);
Records run_records(const Scenario& scenario, const Prediction& prediction,
                    const RunExtras& extras);

}  // namespace stepsim
