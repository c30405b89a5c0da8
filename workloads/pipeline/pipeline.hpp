// A step whose ranks are stages of a pipeline: a program for each stage, linked by what they send
// each other.
#pragma once

#include "workloads/step/step.hpp"

namespace stepsim {

// Bytes that a rank sends for a micro-batch at the end of its piece of the model.
double message_bytes(const StepInput& input);

// What of a step is made by stages: its traffic, its operations, and what each stage holds.
StepProgram build_pipeline(const StepInput& input, Folding folding);

}  // namespace stepsim
