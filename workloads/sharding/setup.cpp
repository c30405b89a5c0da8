// Memory before the first step is done.
#include <algorithm>
#include <cmath>

#include "workloads/layers/rank_share.hpp"
#include "workloads/program/tensors.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;               // bytes of a 16-bit number
constexpr double checkpoint_file = 5e9;  // bytes of one file of a model as it is published
constexpr double most_parts = 1024;      // sub-groups told apart; of more each is a tensor or so

class Setup {
 public:
  explicit Setup(const StepInput& input)
      : input_(input), shares_(shares_of(input)), tensors_(tensors_of(input)) {}

  std::vector<SetupChange> replicated();
  std::vector<SetupChange> zero3();
  std::vector<SetupChange> fsdp();

 private:
  const Strategy& strategy() const { return input_.strategy; }
  bool on_host() const { return strategy().optimizer_place != Offload::none; }
  bool reference() const { return keeps_reference(input_); }

  void take(Pool pool, std::string_view tensor_class, double bytes) {
    if (bytes == 0) return;
    changes_.push_back({moment_, pool, tensor_class, bytes});
    if (pool == Pool::device) held_ += bytes;
  }
  void give(Pool pool, std::string_view tensor_class, double bytes) {
    take(pool, tensor_class, -bytes);
  }
  // Pinned memory is allocated as ordinary memory first, and then copied.
  void pin(std::string_view tensor_class, double bytes) {
    take(Pool::pageable, tensor_class, bytes);
    take(Pool::pinned, tensor_class, bytes);
    give(Pool::pageable, tensor_class, bytes);
  }
  void load_whole(std::string_view tensor_class, double bytes);
  void load_sharded(std::string_view tensor_class, Pool pool, double stored);
  void partition(std::string_view tensor_class, Pool pool, double stored);
  void flatten(double elements);
  void load_zero3();
  std::vector<double> sub_groups(double share) const;
  void copy_masters(Pool pool, const std::vector<double>& parts);

  const StepInput& input_;
  Shares shares_;
  TensorSizes tensors_;
  std::string_view moment_;
  std::vector<SetupChange> changes_;
  double held_ = 0;  // bytes on the device
};

// Each rank reads the whole model into host memory and moves it to its device.
void Setup::load_whole(std::string_view tensor_class, double bytes) {
  take(Pool::pageable, "checkpoint", bytes);
  take(Pool::device, tensor_class, bytes);
  give(Pool::pageable, "checkpoint", bytes);
}

// Module by module: built on the device, filled from a file that one rank of the first node reads,
// partitioned. The largest module is whole for a moment beside the shards.
void Setup::load_sharded(std::string_view tensor_class, Pool pool, double stored) {
  const double file = std::min(checkpoint_file, half * shares_.whole) /
                      static_cast<double>(input_.cluster.gpus_per_node());
  take(Pool::pageable, "checkpoint", file);
  take(pool, tensor_class, stored * shares_.shard);
  take(Pool::device, "whole_module", stored * tensors_.largest_module);
  give(Pool::device, "whole_module", stored * tensors_.largest_module);
  give(Pool::pageable, "checkpoint", file);
}

// The model is there, whole, on every device: tensor by tensor a shard is cut out of it. Where
// ranks with different experts have the same rows, each builds all experts and drops the others'.
void Setup::partition(std::string_view tensor_class, Pool pool, double stored) {
  moment_ = "model load";
  const ParameterCount count = count_parameters(model_of_rank(input_.model, strategy()));
  const double others = static_cast<double>(count.of(TensorClass::expert)) *
                        (1 - 1 / static_cast<double>(repeats_of(strategy())));
  load_whole(tensor_class, stored * (shares_.whole + others));
  give(Pool::device, tensor_class, stored * others);
  moment_ = "partition";
  const double first = stored * tensors_.largest * shares_.shard / shares_.whole;
  take(pool, tensor_class, first);
  give(Pool::device, tensor_class, stored * shares_.whole);
  take(pool, tensor_class, stored * shares_.shard - first);
}

// A group of tensors moves into one flat buffer: on the device where both fit beside one another,
// else over the host.
void Setup::flatten(double elements) {
  const double bytes = half * elements;
  const double slack = slack_of(input_).value.value;
  const double free = input_.cluster.gpu.memory.usable.value.value - held_ * (1 + slack);
  if (free >= bytes) {
    take(Pool::device, "parameters", bytes);
    give(Pool::device, "parameters", bytes);
    return;
  }
  take(Pool::pageable, "parameters", bytes);
  give(Pool::device, "parameters", bytes);
  take(Pool::pageable, "parameters", bytes);
  take(Pool::device, "parameters", bytes);
  give(Pool::pageable, "parameters", 2 * bytes);
}

// Of a share of the optimizer: all of the size that is asked for, but the last.
std::vector<double> Setup::sub_groups(double share) const {
  const double all = share * shares_.updated;
  const double size = std::max(strategy().zero.sub_group, shares_.updated / most_parts);
  std::vector<double> parts(static_cast<std::size_t>(all / size), size);
  if (const double rest = all - static_cast<double>(parts.size()) * size; rest > 0)
    parts.push_back(rest);
  return parts;
}

// A shard is cast to fp32 and the result copied; the name of the cast one is kept until the next.
void Setup::copy_masters(Pool pool, const std::vector<double>& parts) {
  double before = 0;
  for (const double part : parts) {
    take(pool, "master_weights", 4 * part);
    give(pool, "master_weights", before);
    take(pool, "master_weights", 4 * part);
    before = 4 * part;
  }
  give(pool, "master_weights", before);
}

std::vector<SetupChange> Setup::replicated() {
  const bool whole = strategy().sharding == Sharding::zero0;
  const double owned = whole ? shares_.trained : shares_.updated;
  moment_ = "model load";
  load_whole("parameters", half * shares_.whole);
  if (reference()) load_whole("reference", half * shares_.whole);
  if (!whole) {
    // Weight decay splits the parameters; experts have groups of their own.
    moment_ = "flattening";
    const ParameterCount count = count_parameters(model_of_rank(input_.model, strategy()));
    const double vectors = static_cast<double>(count.of(TensorClass::norm));
    const double experts = strategy().expert_parallel > 1
                               ? static_cast<double>(count.of(TensorClass::expert)) /
                                     static_cast<double>(strategy().expert_parallel)
                               : 0;
    if (strategy().lora.rank > 0)
      flatten(shares_.trained);
    else
      for (const double group : {shares_.whole - experts - vectors, vectors, experts})
        flatten(group);
  }
  moment_ = "fp32 copies";
  const double here = states_on_device(input_) * owned, there = owned - here;
  if (strategy().master_weights && here > 0) copy_masters(Pool::device, {here});
  if (there > 0) copy_masters(Pool::pageable, {there});
  if (!whole) {  // a gradient of zeros, for the states' sake
    take(Pool::device, "optimizer_temporary", 4 * here);
    give(Pool::device, "optimizer_temporary", 4 * here);
  }
  moment_ = "gradient buffers";
  const bool kept = keeps_whole_gradient(strategy());
  if (kept) take(Pool::device, "gradients", gradient_bytes(strategy()) * shares_.trained);
  if (there > 0) {
    pin("fp32_gradients", 4 * there);
    take(Pool::device, "offload_buffer", half * tensors_.largest);
    pin("offload_buffer", half * tensors_.largest);
    if (input_.job.accumulation > 1 && !kept) pin("gradients", half * there);
  }
  moment_ = "first update";
  take(Pool::device, "optimizer", state_bytes(strategy()) * here);
  take(Pool::pageable, "optimizer", state_bytes(strategy()) * there);
  take(Pool::pageable, "update_copy", half * there);
  return std::move(changes_);
}

// Parameters, and those of a reference model, where they stay.
void Setup::load_zero3() {
  const Pool parameters = strategy().parameter_place == Offload::none ? Pool::device : Pool::pinned;
  const double far = parameters_on_drives(input_);
  moment_ = "model load";
  if (strategy().parameter_place == Offload::nvme)
    pin("parameter_buffers", parameter_buffer_bytes(strategy()));
  const auto bring = [&](std::string_view tensor_class) {
    moment_ = "model load";
    if (strategy().load == Loading::replica)
      partition(tensor_class, parameters, half);
    else
      load_sharded(tensor_class, parameters, half);
    give(parameters, tensor_class, far * half * shares_.shard);
    take(Pool::disk, tensor_class, far * half * shares_.shard);
  };
  bring("parameters");
  if (reference()) bring("reference");
  if (parameters != Pool::device) return;
  moment_ = "partition";  // over the host into one buffer, against fragments
  const double bytes = half * shares_.shard;
  take(Pool::pageable, "parameters", bytes);
  give(Pool::device, "parameters", bytes);
  take(Pool::device, "parameters", bytes);
  give(Pool::pageable, "parameters", bytes);
}

std::vector<SetupChange> Setup::zero3() {
  const bool drives = strategy().optimizer_place == Offload::nvme;
  load_zero3();
  moment_ = "fp32 copies";
  if (drives) pin("swap_buffers", swap_buffer_bytes(input_));
  const double here = states_on_device(input_);
  const std::vector<double> on_device = sub_groups(here), off_device = sub_groups(1 - here);
  if (strategy().master_weights) {
    copy_masters(Pool::device, on_device);
    if (drives)
      take(Pool::disk, "master_weights", 4 * shares_.updated);
    else
      copy_masters(Pool::pageable, off_device);
  }
  moment_ = "gradient buffers";
  if (on_host()) {
    take(Pool::device, "fp32_gradients", 4 * here * shares_.updated);
    if (drives)
      take(Pool::disk, "fp32_gradients", 4 * shares_.updated);
    else
      for (const double part : off_device) pin("fp32_gradients", 4 * part);
  } else {
    take(Pool::device, "optimizer_temporary", 4 * on_device.front());
    give(Pool::device, "optimizer_temporary", 4 * on_device.front());
  }
  take(Pool::device, "bucket", half * strategy().zero.reduce_bucket);
  const double gradients = gradient_bytes(strategy()) * shares_.updated;
  if (on_host())
    pin("gradients", gradients);
  else
    take(Pool::device, "gradients", gradients);
  moment_ = "first update";
  if (strategy().zero.hpz > 1)
    take(Pool::device, "secondary",
         half * shares_.whole / static_cast<double>(strategy().zero.hpz));
  take(Pool::device, "persistent", (reference() ? 2 : 1) * half * tensors_.persistent);
  const double states = state_bytes(strategy()) * shares_.updated;
  take(Pool::device, "optimizer", here * states);
  take(drives ? Pool::disk : Pool::pageable, "optimizer", (1 - here) * states);
  return std::move(changes_);
}

std::vector<SetupChange> Setup::fsdp() {
  const double stored = strategy().master_weights ? 4 : half;
  const auto bring = [&](std::string_view tensor_class, double bytes) {
    moment_ = "model load";
    if (strategy().load == Loading::replica)
      partition(tensor_class, Pool::device, bytes);
    else
      load_sharded(tensor_class, Pool::device, bytes);
  };
  bring("parameters", stored);
  if (reference()) bring("reference", half);
  moment_ = "first update";
  take(Pool::device, "gradients", stored * shares_.updated);
  take(Pool::device, "optimizer", state_bytes(strategy()) * shares_.updated);
  give(Pool::device, "gradients", stored * shares_.updated);
  return std::move(changes_);
}

}  // namespace

std::vector<SetupChange> setup_of(const StepInput& input) {
  Setup setup(input);
  switch (input.strategy.sharding) {
    case Sharding::zero3:
      return setup.zero3();
    case Sharding::fsdp:
    case Sharding::hsdp:
      return setup.fsdp();
    default:
      return setup.replicated();
  }
}

}  // namespace stepsim
