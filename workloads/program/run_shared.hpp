// Writes a unit that ranks may share: its kernels between what they hand each other.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// What has to be there before the kernels of a pass, and what follows them.
void arrive(StepWriter& writer, const Unit& unit, Phase phase);
void leave(StepWriter& writer, const Unit& unit, Phase phase);

// `rows` are those of the pass; `lasting`: they stay where they are. Hand-overs that run under
// kernels are written with them.
void run_kernels(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                 Phase phase, Cause cause, bool lasting);
// Parts of a backward pass. What ranks keep in pieces of a product's input is collected for the
// weights, that of its gradient is summed behind the inputs.
void run_inputs(StepWriter& writer, const Unit& unit, Cause cause);
void run_weights(StepWriter& writer, const Unit& unit, Cause cause);

}  // namespace stepsim
