#include "workloads/sharding/resident.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/layers/rank_share.hpp"
#include "workloads/program/tensors.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/sharding/sharding.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

struct Lister {
  Resident result;

  void add(Pool pool, std::string_view tensor_class, double bytes) {
    if (bytes > 0) result.holdings.push_back({pool, tensor_class, bytes});
  }
};

// Stages 0 to 2: every rank holds all parameters. Gradients come and go within a step, but for the
// one buffer that accumulates them in fp32.
void list_replicated(Lister& list, const StepInput& input, const Shares& shares) {
  const Strategy& s = input.strategy;
  const double owned = s.sharding == Sharding::zero0 ? shares.trained : shares.updated;
  list.add(Pool::device, "parameters", half * shares.whole);
  if (keeps_reference(input)) list.add(Pool::device, "reference", half * shares.whole);
  const double largest = tensors_of(input).largest;
  if (keeps_whole_gradient(s))
    list.add(Pool::device, "gradients", gradient_bytes(s) * shares.trained);
  const double here = states_on_device(input) * owned, there = owned - here;
  list.add(Pool::device, "master_weights", s.master_weights ? 4 * here : 0);
  list.add(Pool::device, "optimizer", state_bytes(s) * here);
  if (s.optimizer_place == Offload::none) return;
  // A tensor's gradient passes through a buffer on both sides; its sum waits in 16 bits.
  list.add(Pool::device, "offload_buffer", half * largest);
  list.add(Pool::pinned, "offload_buffer", half * largest);
  list.add(Pool::pinned, "fp32_gradients", 4 * there);
  if (input.job.accumulation > 1 && !keeps_whole_gradient(s))
    list.add(Pool::pinned, "gradients", half * there);
  list.add(Pool::pageable, "master_weights", 4 * there);
  list.add(Pool::pageable, "optimizer", state_bytes(s) * there);
  list.add(Pool::pageable, "update_copy", half * there);
}

void list_zero3(Lister& list, const StepInput& input, const Shares& shares) {
  const Strategy& s = input.strategy;
  const double copies = keeps_reference(input) ? 2 : 1;
  const bool host = s.optimizer_place != Offload::none;
  const Pool parameters = s.parameter_place == Offload::none ? Pool::device : Pool::pinned;
  const double far = parameters_on_drives(input);
  const auto add = [&](std::string_view tensor_class) {
    list.add(parameters, tensor_class, (1 - far) * half * shares.shard);
    list.add(Pool::disk, tensor_class, far * half * shares.shard);
  };
  add("parameters");
  if (copies > 1) add("reference");
  if (s.parameter_place == Offload::nvme)
    list.add(Pool::pinned, "parameter_buffers", parameter_buffer_bytes(s));
  // The secondary partition keeps a copy for the backward gathers.
  if (s.zero.hpz > 1)
    list.add(Pool::device, "secondary", half * shares.whole / static_cast<double>(s.zero.hpz));
  list.add(Pool::device, "persistent", copies * half * tensors_of(input).persistent);
  list.add(Pool::device, "bucket", half * s.zero.reduce_bucket);
  list.add(host ? Pool::pinned : Pool::device, "gradients", gradient_bytes(s) * shares.updated);
  const bool drives = s.optimizer_place == Offload::nvme;
  const double here = states_on_device(input) * shares.updated, there = shares.updated - here;
  if (host) list.add(drives ? Pool::disk : Pool::pinned, "fp32_gradients", 4 * there);
  if (host) list.add(Pool::device, "fp32_gradients", 4 * here);
  const Pool states = drives ? Pool::disk : Pool::pageable;
  list.add(Pool::device, "master_weights", s.master_weights ? 4 * here : 0);
  list.add(Pool::device, "optimizer", state_bytes(s) * here);
  list.add(states, "master_weights", s.master_weights ? 4 * there : 0);
  list.add(states, "optimizer", state_bytes(s) * there);
  if (drives) list.add(Pool::pinned, "swap_buffers", swap_buffer_bytes(input));
}

// The sharded parameters are the master copy themselves. Gradients come with the first reduction
// and go with the update.
void list_fsdp(Lister& list, const StepInput& input, const Shares& shares) {
  const Strategy& s = input.strategy;
  const double stored = s.master_weights ? 4 : half;
  const bool whole = input.stack.fp32_frozen && s.lora.quantised == Quantised::none;
  const double frozen = whole ? stored : half;
  list.add(Pool::device, "parameters",
           stored * shares.updated + frozen * (shares.shard - shares.updated));
  if (keeps_reference(input)) list.add(Pool::device, "reference", half * shares.shard);
  list.add(Pool::device, "optimizer", state_bytes(s) * shares.updated);
}

}  // namespace

double Resident::in(Pool pool) const {
  double sum = 0;
  for (const Holding& holding : holdings)
    if (holding.pool == pool) sum += holding.bytes;
  return sum;
}

double states_on_device(const StepInput& input) {
  const Strategy& s = input.strategy;
  if (s.optimizer_place == Offload::none) return 1;
  if (s.optimizer_place == Offload::nvme) return 0;
  if (s.sharding != Sharding::zero3) return 1 - s.offload.ratio;  // tensor by tensor
  if (s.zero.sub_group <= 0) return 1 - s.offload.ratio;          // a tensor each
  const double groups = std::max(1.0, std::ceil(shares_of(input).updated / s.zero.sub_group));
  return std::floor((1 - s.offload.ratio) * groups) / groups;
}

double parameters_on_drives(const StepInput& input) {
  if (input.strategy.parameter_place != Offload::nvme) return 0;
  const double shard = shares_of(input).shard;
  return std::max(0.0, shard - input.strategy.offload.max_in_cpu) / shard;
}

double largest_sub_group(const StepInput& input) {
  const double shard = shares_of(input).updated, size = input.strategy.zero.sub_group;
  return size <= 0 ? tensors_of(input).largest * shard / shares_of(input).whole
                   : std::min(size, shard);
}

double parameter_buffer_bytes(const Strategy& strategy) {
  return half * static_cast<double>(strategy.offload.parameter_buffers) *
         strategy.offload.buffer_size;
}

double swap_buffer_bytes(const StepInput& input) {
  return 4 * static_cast<double>(input.strategy.offload.optimizer_buffers) *
         largest_sub_group(input);
}

double state_bytes(const Strategy& strategy) {
  // Moments have the type of what is updated: 16 bits where there is no fp32 copy.
  if (strategy.optimizer == OptimizerKind::adamw &&
      (strategy.moments == MomentType::bf16 || !strategy.master_weights))
    return 2 * half;
  return optimizer_state_bytes(strategy.optimizer);
}

double gradient_bytes(const Strategy& strategy) {
  return strategy.gradients == GradientType::fp32 ? 4 : half;
}

bool keeps_reference(const StepInput& input) {
  return input.job.has_reference() && input.strategy.lora.rank == 0;
}

bool keeps_whole_gradient(const Strategy& strategy) {
  return strategy.sharding == Sharding::zero1 &&
         (strategy.distributed.used || strategy.gradients == GradientType::fp32);
}

// FSDP's second version takes what it gathers on the stream of the kernels.
std::size_t allocating_stream(const Strategy& strategy, std::string_view tensor_class) {
  const bool apart =
      is_fsdp(strategy.sharding) ? strategy.fsdp.version == 1 : strategy.zero.overlap_comm;
  if (!apart) return 0;
  if (tensor_class == "gathered") return 1;
  return tensor_class == "reduce_input" || tensor_class == "gradient_copy" ? 2 : 0;
}

const Constant<Ratio>& slack_of(const StepInput& input) {
  return input.strategy.sharding == Sharding::zero3 ? input.stack.allocator_slack_gathering
                                                    : input.stack.allocator_slack;
}

Shares shares_of(const StepInput& input) {
  const Mesh mesh = mesh_of(input.strategy, input.cluster);
  const double shards = static_cast<double>(mesh.shard);
  if (input.strategy.lora.rank > 0) {
    const StoredElements elements = stored_elements(input);
    return {elements.all, elements.all / shards, elements.trained, elements.trained / shards};
  }
  const ParameterCount count = count_parameters(model_of_rank(input.model, input.strategy));
  const double experts = static_cast<double>(count.of(TensorClass::expert));
  const double all = static_cast<double>(count.total());
  if (!sends_tokens(input.strategy)) return {all, all / shards, all, all / shards};
  // Experts have fewer copies, and so fewer ranks to share one among.
  const double held = experts / static_cast<double>(mesh.experts);
  const double local = all - experts + held;
  const double shard = (all - experts) / shards + held / static_cast<double>(mesh.expert_shard);
  return {local, shard, local, shard};
}

double states_of(const StepInput& input) {
  const Strategy& s = input.strategy;
  double sum = 0;
  for (const Holding& holding : resident_of(input).holdings)
    for (const std::string_view kept : {"parameters", "gradients", "master_weights", "optimizer"})
      if (holding.pool == Pool::device && holding.tensor_class == kept) sum += holding.bytes;
  // Those of stages 0 to 2 and of FSDP come with the backward pass.
  const Shares shares = shares_of(input);
  if (is_fsdp(s.sharding)) return sum + (s.master_weights ? 4 : half) * shares.updated;
  if (s.sharding == Sharding::zero0) return sum + half * shares.trained;
  const bool own = s.sharding == Sharding::zero1 || s.sharding == Sharding::zero2;
  if (!own || keeps_whole_gradient(s)) return sum;
  return sum + states_on_device(input) * gradient_bytes(s) * shares.updated;
}

Resident resident_of(const StepInput& input) {
  Lister list;
  const Shares shares = shares_of(input);
  switch (input.strategy.sharding) {
    case Sharding::zero3:
      list_zero3(list, input, shares);
      break;
    case Sharding::fsdp:
    case Sharding::hsdp:
      list_fsdp(list, input, shares);
      break;
    default:
      list_replicated(list, input, shares);
      break;
  }
  return std::move(list.result);
}

}  // namespace stepsim
