// From what a user knows of a run's length to optimizer steps: the arithmetic of batches.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/job.hpp"
#include "workloads/strategy.hpp"

namespace stepsim {

struct RunLength {
  double effective_batch = 0;  // sequences, or pairs, to an optimizer step, over all ranks
  double iterations = 0;       // micro-batches on each rank: what a loop over the data counts
  double optimizer_steps = 0;  // what a trainer's progress bar counts
  double epochs = 1;
  double tokens = 0;  // over all ranks, padding left out
};

// Nothing when the job does not say how long it is.
std::optional<RunLength> run_length(const Job& job, std::uint32_t ranks);

}  // namespace stepsim
