// Kernels by what bounds them: a profile of a run can be held against this.
#pragma once

#include "workloads/program/step_input.hpp"

namespace stepsim {

// These are seconds of a rank and step, or shares of their sum.
struct KernelTimes {
  double products = 0, attention = 0, other = 0;

  double all() const { return products + attention + other; }
};

// Returns what the kernels of a step take that its program has, each alone; of a pipeline, those of
// the first stage.
KernelTimes kernel_times(const StepInput& input);

}  // namespace stepsim
