// Kernels by what bounds them: a profile of a run can be held against this.
#pragma once

#include "workloads/program/step_input.hpp"

namespace stepsim {

// These are seconds of a rank and step, or shares of their sum.
struct KernelTimes {
  double products = 0, attention = 0, other = 0;

  double all() const { return products + attention + other; }
};

// Returns what the kernels of a step take, each alone: those of the passes, for gradients between
// them, and of an update on the device. Of a pipeline it is the first stage.
KernelTimes kernel_times(const StepInput& input);

}  // namespace stepsim
