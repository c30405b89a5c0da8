// A step's program and how it went.
#pragma once

#include <functional>

#include "sim/engine/player.hpp"
#include "sim/ideal.hpp"
#include "sim/trace.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

// Where micro-batches are alike the graph has a few of them, and the trace says what comes again.
struct ReplayedStep {
  StepProgram program;
  Trace trace;
  std::size_t operations = 0;  // of the whole step
};

struct Replaying {
  Folding folding = Folding::automatic;
  CauseSet free{};  // causes that cost nothing
  Player player{};
};
// With times alone.
ReplayedStep replay_step(const StepInput& input, const Replaying& how);
// Operation by operation, with all that a trace can say.
ReplayedStep replay_whole_step(const StepInput& input, const Replaying& how);

// The program alone, for its memory in program order: what rows of full length need. Labels are
// enough for sums; to place what is asked for, operations are needed.
StepProgram step_for_memory(const StepInput& input, Written written = Written::memory);

// What a step's operations add up to by cause. Where micro-batches are alike, a few of them say
// what each further one adds.
using SumOfProgram = std::function<ByCause<double>(const StepProgram&)>;
ByCause<double> summed_over_step(const StepInput& input, const SumOfProgram& sum);

// How many operations the step is, without replaying it.
std::size_t count_operations(const StepInput& input);

}  // namespace stepsim
