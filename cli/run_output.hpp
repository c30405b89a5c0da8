// These write what `run` says of a training step.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/outcome/open_values.hpp"
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
  std::vector<OtherVerdict> others;  // of a step that does not fit
  std::vector<OpenValue> open;       // what was taken
  Rates rates;
  std::optional<TrainerLog> log;  // of the real run
  bool energy = false;            // by cause
  bool asked = false;             // for changes, by number
  double allocated = 0;           // bytes, as the framework's log counts them
};

// Returns the bytes that the framework's own log says at the end of a step, in the program's order.
double logged_bytes(const Scenario& scenario);

// Says what is trained, where, and with what: "llama-3.2-3b on 1 x mi300x-8, Megatron".
std::string place_text(const Scenario& scenario);
JobTime job_time_of(const Scenario& scenario, const Prediction& prediction);
// Writes what is known at once: the title, and the answer in a sentence.
std::string head_text(const Scenario& scenario, const Prediction& prediction,
                      const RunExtras& extras);
// Writes all else, as much of it as fits a screen; the changes have to be found by then.
std::string screen_text(const Scenario& scenario, const Prediction& prediction,
                        const RunExtras& extras);
// Writes everything there is, in place of that.
std::string whole_text(const Scenario& scenario, const Prediction& prediction,
                       const RunExtras& extras);
// Writes the answer in a line, what was taken in a second one, and what is missing in a third.
std::string brief_text(const Scenario& scenario, const Prediction& prediction,
                       const RunExtras& extras);
// Writes " (likely 716 ms to 827 ms)".
std::string likely_text(const std::optional<Interval>& interval);
Records run_records(const Scenario& scenario, const Prediction& prediction,
                    const RunExtras& extras);

}  // namespace stepsim
