// What a rank holds from one step to the next, and how it came there.
#pragma once

#include <string_view>
#include <vector>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

struct Holding {
  Pool pool = Pool::device;
  std::string_view tensor_class;
  double bytes = 0;
};

// Of one rank: its device, and its share of the node's memory and drives.
struct Resident {
  std::vector<Holding> holdings;  // a class once per pool, none of them empty

  double in(Pool pool) const;
};
Resident resident_of(const StepInput& input);

// Something that happens to memory before the first step is done.
struct SetupChange {
  std::string_view moment;  // "fp32 copies"
  Pool pool = Pool::device;
  std::string_view tensor_class;
  double bytes = 0;  // negative: given back
};

// From nothing to what is resident, in the order of DeepSpeed's and FSDP's constructors: loading,
// flattening or partitioning, fp32 copies, gradient buffers, and the states that the first update
// creates.
std::vector<SetupChange> setup_of(const StepInput& input);

// Elements on a rank: its share of the model before anything is sharded (experts are shared out
// among expert-parallel ranks first), and the part that its optimizer owns.
struct Shares {
  double whole = 0;
  double shard = 0;
  double trained = 0;  // of `whole`: all but what adapters leave frozen
  double updated = 0;  // of `shard`
};
Shares shares_of(const StepInput& input);

// Bytes of parameters, gradients, master copy and optimizer on the device when an update begins.
double states_of(const StepInput& input);

// Share of the optimizer's elements that is updated on the device: whole sub-groups.
double states_on_device(const StepInput& input);
// Share of a rank's parameters that is on drives, beyond what stays in host memory.
double parameters_on_drives(const StepInput& input);
// Elements of the largest sub-group.
double largest_sub_group(const StepInput& input);
// Pinned bytes through which parameters and optimizer states pass to drives and back.
double parameter_buffer_bytes(const Strategy& strategy);
double swap_buffer_bytes(const StepInput& input);

// Streams of a framework that ask its allocator for memory, and on which of them a tensor of this
// class is made: kernels, gathers, reductions.
inline constexpr std::size_t allocating_streams = 3;
std::size_t allocating_stream(const Strategy& strategy, std::string_view tensor_class);

// What the allocator reserves beyond what is used, as a share.
const Constant<Ratio>& slack_of(const StepInput& input);
// Bytes per element that the optimizer keeps beside parameters and master copy.
double state_bytes(const Strategy& strategy);
// Bytes of a gradient that waits for the optimizer.
double gradient_bytes(const Strategy& strategy);
// A frozen copy beside the policy. Without its adapters a model is its own reference.
bool keeps_reference(const StepInput& input);
// Stage 1 with fp32 gradients accumulates all of them on every rank.
bool keeps_whole_gradient(const Strategy& strategy);

}  // namespace stepsim
