#include "workloads/sharding/updates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "workloads/sharding/states.hpp"
#include "workloads/sharding/whole_matrices.hpp"

namespace stepsim {
namespace {

// PyTorch's kernels over many tensors, and DeepSpeed's, take at most so many blocks of so many
// elements in a launch, and so many tensors, fewer the more lists the operator has (PyTorch's
// ATen/native/cuda/MultiTensorApply.cuh; DeepSpeed's multi_tensor_apply.cuh has the same).
constexpr double block = 65536;
constexpr double blocks = 320;
constexpr std::array<double, 4> tensors_of_lists{110, 64, 48, 36};

double launches_over(const UpdatedTensors& of, std::size_t lists) {
  return std::max(std::ceil(of.elements / (blocks * block)),
                  std::ceil(of.tensors / tensors_of_lists[lists - 1]));
}

}  // namespace

// Returns the traffic of an update for each element. A matrix that became orthogonal is applied;
// the rest takes `of_element`.
double update_traffic(const RankPart& rank, double of_element) {
  const double apart = share_in_matrices(rank);
  if (apart <= 0) return of_element;
  const Strategy& s = rank.input.strategy;
  const double width = s.master_weights ? 4 : s.precision.numbers;
  return (1 - apart) * of_element + apart * s.optimizer.orthogonal->applied_passes * width;
}

double optimizer_traffic_bytes(const RankPart& rank) {
  const Strategy& strategy = rank.input.strategy;
  // Moments and the fp32 master are read and written, the gradient is read, 16 bits written: where
  // there are 16.
  const Optimizer& optimizer = strategy.optimizer;
  const double width = strategy.moments == MomentType::bf16 ? bytes_16 : 4;
  const double states =
      optimizer.factored ? state_bytes(rank) : optimizer.bytes.value_or(optimizer.moments * width);
  const double copied = strategy.precision.whole() && !strategy.master_weights ? 0 : bytes_16;
  return update_traffic(rank, 2 * states + 2 * 4 + 4 + copied);
}

UpdateCost update_cost(const RankPart& rank, const UpdatedTensors& all) {
  UpdateCost cost;
  const Strategy& strategy = rank.input.strategy;
  const double apart = share_in_matrices(rank);
  UpdatedTensors of = all;
  of.elements *= 1 - apart;
  const Optimizer& optimizer = strategy.optimizer;
  const Optimizer::Counts& counts = optimizer.counts;
  const double width =
      strategy.master_weights ? 4 : strategy.precision.numbers;  // bytes of a moment
  const double more = width * (counts.passes - counts.passes_of_kernel) * of.elements;
  const double count = counts.operators();
  if (optimizer.kernels.empty()) {
    cost.launches = cost.dispatches = optimizer.own_launches * of.tensors;
    const auto& peak = rank.input.cluster.gpu.peak;
    if (peak.fp32)
      cost.computing = Seconds{optimizer.operations * of.elements / peak.fp32->number()};
  } else if (strategy.update_kernels == UpdateKernels::fused) {
    cost.launches = launches_over(of, static_cast<std::size_t>(optimizer.lists()));
    cost.dispatches = 1;
  } else if (strategy.update_kernels == UpdateKernels::foreach) {
    for (std::size_t lists = 1; lists <= counts.of_lists.size(); ++lists)
      cost.launches += counts.of_lists[lists - 1] * launches_over(of, lists);
    cost.dispatches = count;
    cost.more_bytes = more;
    cost.temporary = counts.all_for_lists * width * of.elements;
  } else {
    cost.launches = cost.dispatches = count * of.tensors;
    cost.more_bytes = more;
    cost.temporary = counts.all_for_tensor * width * of.largest;
  }
  if (apart > 0) {
    const double applied = optimizer.orthogonal->applied_kernels * of.tensors;
    cost.launches += applied;
    cost.dispatches += applied;
  }
  return cost;
}

Seconds gradient_hook(const StepInput& input, double tensors) {
  const auto& host = input.stack.host;
  const Seconds counting = tensors * host.count_visit.value;
  const Seconds hook = input.strategy.sharding == Sharding::zero3 ? host.partition_hook.value
                                                                  : host.gradient_hook.value;
  return hook + (input.strategy.zero.counts_in_hooks ? counting : Seconds{0});
}

HostUpdate host_update_of(const Cluster& cluster, const Strategy& strategy) {
  const Host& host = cluster.node.host;
  const OffloadKeys& keys = strategy.offload;
  HostUpdate update{host.cpu_adam.value};
  if (keys.adam == HostAdam::grace && host.cpu_adam_grace) update.adam = host.cpu_adam_grace->value;
  if (!host.core_stream) return update;
  double cores = std::numeric_limits<double>::infinity();
  if (host.cores > 0) cores = static_cast<double>(host.cores) / cluster.gpus_per_node();
  if (keys.threads > 0) cores = std::min(cores, static_cast<double>(keys.threads));
  update.most = {cores * host.core_stream->value.value};
  return update;
}

// Operator by operator what is in memory passes through the cores as often as on a device. The
// node's file has the bytes of an optimizer with two moments: seven passes over a list.
double host_adam_bytes(const StepInput& input) {
  const Optimizer& optimizer = input.strategy.optimizer;
  const double of_two = (3 + 2 * optimizer.moments) / (3 + 2 * 2);
  const double once = input.cluster.node.host.cpu_adam_bytes.value.value * of_two;
  const bool apart = input.strategy.offload.adam == HostAdam::operators;
  return apart ? once * optimizer.counts.passes / optimizer.counts.passes_of_kernel : once;
}

KernelRow update_row(const UpdateCost& cost, double bytes, double others) {
  KernelRow row{"update", KernelClass::memory, 0, bytes + cost.more_bytes, cost.launches + others};
  row.operators = cost.dispatches + others;
  row.least = cost.computing;
  return row;
}

void hold_while_updating(StepWriter& writer, Mark update, const UpdateCost& cost) {
  writer.allocate(update, Held::update_temporary, cost.temporary);
  writer.release(update, Held::update_temporary, cost.temporary);
}

Mark update_shard_on_host(StepWriter& writer, double elements, double more_bytes, Mark ready) {
  const double bytes = elements * (host_adam_bytes(writer.input()) + more_bytes);
  const Mark update =
      writer.traffic(Plan::cpu_update, {bytes}, Cause::cpu_optimizer, "cpu_adam", {ready});
  writer.host({0}, Cause::cpu_optimizer, "cpu_adam_done", {update});
  return update;
}

void stop_behind_update(StepWriter& writer, double tensors) {
  if (!writer.input().strategy.optimizer.stops_behind_tensor) return;
  writer.drain(tensors * writer.input().stack.host.sync.value, Cause::optimizer, "update_done");
}

}  // namespace stepsim
