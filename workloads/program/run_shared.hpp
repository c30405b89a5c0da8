// Writes a unit that ranks may share: its kernels between what they hand each other.
#pragma once

#include <span>
#include <vector>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Which traffic a hand-over is, and the groups of ranks that do it: equal ones, whose members are
// `stride` apart.
Plan plan_of(Handover kind);
struct GroupShape {
  Collective kind{};
  Rank size = 1, stride = 1;
};
GroupShape shape_of(Handover kind, const Mesh& mesh);

// Whether its products run in a type of their own, narrower than 16 bits.
bool is_narrow(const Unit& unit, Phase phase);

// What the kernels of a pass wait for, one after the other, and what those that follow them wait
// for. What travels beside kernels is none of it.
struct Awaited {
  std::span<const Transfer> before, behind;
};
Awaited awaited(const Strategy& strategy, const Unit& unit, Phase phase);

// Where keys and values go round a ring of ranks: the kernels of one round, and the others.
struct RingRows {
  std::vector<KernelRow> around, block;
};
RingRows rows_in_ring(const Unit& unit, const std::vector<KernelRow>& rows);

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
