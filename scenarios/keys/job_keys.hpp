// The keys of the job block of a scenario that is no GRPO job, and of the blocks in it.
#pragma once

#include <span>

#include "scenarios/keys/key.hpp"
#include "workloads/strategy/job.hpp"

namespace stepsim {

// Returns the block of `method` alone, which decides on all other keys.
const Block<Job>& method_block();

// Returns the blocks of sft and dpo in the order of reading: a default may follow from what stands
// above it.
std::span<const Block<Job>> job_blocks();

}  // namespace stepsim
