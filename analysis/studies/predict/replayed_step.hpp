// A replayed step is its program and how it went.
#pragma once

#include <functional>

#include "sim/engine/player.hpp"
#include "sim/ideal.hpp"
#include "sim/trace.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

// If micro-batches are alike, the graph has a few of them and the trace says what comes again.
struct ReplayedStep {
  StepProgram program;
  Trace trace;
  std::size_t operations = 0;  // of the whole step
};

struct Replaying {
  Folding folding = Folding::automatic;
  CauseSet free{};  // causes that cost nothing
  Player player{};
  bool metered = false;  // SimGrid's replays meter energy, which is compared with the integral
};
// Replays the step with times alone.
ReplayedStep replay_step(const StepInput& input, const Replaying& how);
// Operation by operation, with all that a trace can say.
ReplayedStep replay_whole_step(const StepInput& input, const Replaying& how);

// Writes the program alone, for its memory in program order: what rows of full length need. Labels
// are enough for sums; to place what is asked for, operations are needed.
StepProgram step_for_memory(const StepInput& input, Written written = Written::memory);

// Returns what a step's operations add up to by cause. If micro-batches are alike, a few of them
// say what each other one adds.
using SumOfProgram = std::function<ByCause<double>(const StepProgram&)>;
ByCause<double> summed_over_step(const StepInput& input, const SumOfProgram& sum);

// Returns how many micro-batches a replay writes where they soon repeat themselves.
std::int64_t micro_batches_written(const StepInput& input);

// Returns how many operations the step is, without replaying it.
std::size_t count_operations(const StepInput& input);

}  // namespace stepsim
