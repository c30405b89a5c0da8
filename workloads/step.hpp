// One optimizer step of a training job as a program.
#pragma once

#include "workloads/model_flops.hpp"
#include "workloads/resident.hpp"

namespace stepsim {

struct StepProgram {
  Traffic traffic;
  OpGraph graph;
  ModelFlops flops;   // of a rank
  double tokens = 0;  // of all ranks, without padding
  Resident resident;  // before the step begins and after it
};

StepProgram build_step(const StepInput& input, Folding folding);

}  // namespace stepsim
