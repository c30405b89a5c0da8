// Writes a unit that ranks may share: its kernels between what they hand each other.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// What has to be there before the kernels of a pass, and what follows them.
void arrive(StepWriter& writer, const Unit& unit, Phase phase);
void leave(StepWriter& writer, const Unit& unit, Phase phase);

// The backward pass of a product is two of them: for its input, and for its weights. What is no
// product goes with the first.
std::vector<KernelRow> half_of_backward(const std::vector<KernelRow>& rows, bool of_weights);

// `rows` are those of the pass; `lasting`: they stay where they are. Hand-overs that run under
// kernels are written with them.
void run_kernels(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                 Phase phase, Cause cause, bool lasting);

}  // namespace stepsim
