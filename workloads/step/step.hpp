// One optimizer step of a training job as a program.
#pragma once

#include "workloads/pipeline/pipeline.hpp"
#include "workloads/step/model_flops.hpp"

namespace stepsim {

struct StepProgram {
  Traffic traffic;
  OpGraph graph;
  ModelFlops flops;               // of a rank
  double tokens = 0;              // of all ranks, without padding
  Resident resident;              // before the step begins and after it
  std::vector<StepStage> stages;  // of a pipeline; empty: all ranks do the same
};

StepProgram build_step(const StepInput& input, Folding folding, Written written = Written::whole);

}  // namespace stepsim
