// Writes a unit that ranks may share: its kernels between what they hand each other.
#pragma once

#include <span>
#include <vector>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// These say which traffic a hand-over is, and which groups of ranks do it: equal ones, whose
// members are `stride` apart.
Plan plan_of(Handover kind);
struct GroupShape {
  Collective kind{};
  Rank size = 1, stride = 1;
};
GroupShape shape_of(Handover kind, const Mesh& mesh);

// Returns whether its products run in a type of their own, narrower than 16 bits.
bool is_narrow(const Unit& unit, Phase phase);

// The kernels of a pass wait for `before`, one after the other, and what follows them waits for
// `behind`. What travels beside kernels is none of it.
struct Awaited {
  std::span<const Transfer> before, behind;
};
Awaited awaited(const Strategy& strategy, const Unit& unit, Phase phase);

// If keys and values go round a ring of ranks, these are the kernels of one round, and the others.
struct RingRows {
  std::vector<KernelRow> around, block;
};
RingRows rows_in_ring(const Unit& unit, const std::vector<KernelRow>& rows);

// arrive() writes what has to be there before the kernels of a pass, leave() what follows them.
void arrive(StepWriter& writer, const Unit& unit, Phase phase);
void leave(StepWriter& writer, const Unit& unit, Phase phase);

// `rows` are those of the pass; `lasting`: they stay where they are. Hand-overs that run under
// kernels are written with them.
void run_kernels(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                 Phase phase, Cause cause, bool lasting);
// These write parts of a backward pass. What ranks keep in pieces of a product's input is collected
// for the weights, that of its gradient is summed behind the inputs.
void run_inputs(StepWriter& writer, const Unit& unit, Cause cause);
void run_weights(StepWriter& writer, const Unit& unit, Cause cause);

}  // namespace stepsim
