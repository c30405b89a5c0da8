// This reckons from what a user knows of a run's length to optimizer steps: the arithmetic of
// batches.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

struct Scenario;

struct RunLength {
  double effective_batch = 0;  // sequences, or pairs, to an optimizer step, over all ranks
  double iterations = 0;       // micro-batches on each rank: what a loop over the data counts
  double optimizer_steps = 0;  // what a trainer's progress bar counts
  double epochs = 1;
  double tokens = 0;                // over all ranks, padding left out
  double iterations_per_epoch = 0;  // 0: an epoch has no length of its own
};

// Returns nothing when the job does not say how long it is.
std::optional<RunLength> run_length(const Job& job, std::uint32_t ranks);
std::optional<RunLength> run_length(const Scenario& scenario);

// Checkpoints that a run writes: one every so many steps, and one behind the last step.
double saves_of(const Job& job, double optimizer_steps);
// Micro-batches of each rank that a loader passes over when the run is resumed: those of the epoch
// that it was in.
double skipped_iterations(const Job& job, const std::optional<RunLength>& length);

}  // namespace stepsim
