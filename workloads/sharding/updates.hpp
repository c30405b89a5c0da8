// The update of a list of tensors is made of these, by the optimizer and its kernels, on the device
// and on the host.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Returns what the host spends when a tensor's gradient is there; `tensors` are all of the model.
Seconds gradient_hook(const StepInput& input, double tensors);

// These say how fast the host updates, and how much host memory traffic a parameter takes.
HostUpdate host_update_of(const Cluster& cluster, const Strategy& strategy);
double host_adam_bytes(const StepInput& input);

// The host cores update a shard when `ready` is done, and move so many bytes more for each element;
// the host thread waits for it.
Mark update_shard_on_host(StepWriter& writer, double elements, double more_bytes, Mark ready);

// One call of the optimizer updates these: a flat shard is one tensor.
struct UpdatedTensors {
  double elements = 0;  // of all
  double tensors = 1;
  double largest = 0;  // elements of one
};
struct UpdateCost {
  double launches = 0;
  double dispatches = 0;  // operators of the host
  double more_bytes = 0;  // of traffic, than one kernel has that does everything
  double temporary = 0;   // bytes of device memory while it runs
  Seconds computing{0};   // of kernels that compute longer than they stream
};
UpdateCost update_cost(const RankPart& rank, const UpdatedTensors& of);
// Returns the update's kernels, and `others` around them: norms, scales, casts.
KernelRow update_row(const UpdateCost& cost, double bytes, double others);
// Its device memory, while it runs.
void hold_while_updating(StepWriter& writer, Mark update, const UpdateCost& cost);
// Some optimizers stop the host behind each tensor until the device is done.
void stop_behind_update(StepWriter& writer, double tensors);

// Bytes of device memory per element that one update reads and writes: of a flat shard, and where
// elements that are updated by themselves have so many.
double optimizer_traffic_bytes(const RankPart& rank);
double update_traffic(const RankPart& rank, double of_element);

}  // namespace stepsim
