// These say how many bytes gradients and optimizer states have, and which of them are not on the
// device.
#pragma once

#include "workloads/program/rank_part.hpp"

namespace stepsim {

// Bytes that the optimizer keeps beside parameters and master copy: of each element that it takes
// by itself, and per element of all that a rank has of it.
double element_state_bytes(const Strategy& strategy);
double state_bytes(const RankPart& rank);
// Returns the bytes of those that the update of an element itself passes over.
double passed_state_bytes(const RankPart& rank);
// Bytes of a gradient that waits for the optimizer.
double gradient_bytes(const Strategy& strategy);
// Returns whether a frozen copy is kept beside the policy. A model is its own reference without its
// adapters.
bool keeps_reference(const StepInput& input);
// Returns whether every rank accumulates all gradients, as stage 1 does with those in fp32.
bool keeps_whole_gradient(const Strategy& strategy);
// Returns the elements that a rank updates.
double owned_elements(const RankPart& rank);

// Share of the optimizer's elements that is updated on the device: whole sub-groups.
double states_on_device(const RankPart& rank);
// Share of a rank's parameters that is on drives, beyond what stays in host memory.
double parameters_on_drives(const RankPart& rank);
// These return the pinned bytes through which parameters and optimizer states pass to drives and
// back.
double parameter_buffer_bytes(const Strategy& strategy);
double swap_buffer_bytes(const RankPart& rank);

}  // namespace stepsim
