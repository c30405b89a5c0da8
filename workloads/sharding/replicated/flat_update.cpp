#include "workloads/sharding/replicated/flat_update.hpp"

#include "workloads/sharding/states.hpp"
#include "workloads/sharding/updates.hpp"
#include "workloads/sharding/whole_matrices.hpp"

namespace stepsim {

FlatUpdate::FlatUpdate(StepWriter& writer, const GradientBuckets& buckets)
    : writer_(writer),
      buckets_(buckets),
      shares_(writer.input().strategy.sharding != Sharding::zero0),
      on_device_(states_on_device(writer.rank())) {}

std::optional<Mark> FlatUpdate::agreed_norm() {
  if (on_device_ <= 0 || writer_.input().strategy.update_in_backward) return std::nullopt;
  return writer_.collective(Plan::signal, {4}, Stream::reduce, Cause::optimizer, "norm",
                            {own_norm()});
}

// Returns what the optimizer of a rank updates.
FlatUpdate::Owned FlatUpdate::owned() const {
  Owned sum;
  for (const GradientBucket* bucket : buckets_.all()) {
    sum.elements += bucket->parameters / sharers(*bucket);
    sum.tensors += bucket->tensors / sharers(*bucket);
  }
  return sum;
}

// Runs per owned tensor a cast and a reduction. DeepSpeed casts each to 64 bits first.
Mark FlatUpdate::own_norm() {
  writer_.context = {Phase::optimizer, -1, -1};
  const auto [elements, tensors] = owned();
  const double bytes =
      flattens() ? writer_.input().stack.operators.zero_update.norm : writer_.number_bytes();
  return writer_.run(
      {{"norm", KernelClass::memory, 0, bytes * on_device_ * elements, 3 * on_device_ * tensors}},
      false, Cause::optimizer, "gradient_norm");
}

void FlatUpdate::update(std::optional<Mark> norm, double waiting) {
  writer_.context = {Phase::optimizer, -1, -1};
  const auto [elements, tensors] = owned();
  if (norm) {
    writer_.host(writer_.input().stack.host.sync.value, Cause::optimizer, "read_norm", {*norm});
    orthogonalise(writer_);
    // One flat shard after the other.
    for (const double group : group_shards()) {
      const double share = group / elements;
      update_group(on_device_ * group, on_device_ * tensors * share, waiting * share);
    }
  }
  if (on_device_ < 1) update_on_host((1 - on_device_) * elements);
}

// Elements that a rank updates of each parameter group: what decays, what does not, and experts.
std::vector<double> FlatUpdate::group_shards() const {
  std::vector<double> shards;
  for (const GradientBucket* bucket : buckets_.all())
    for (const double elements : {bucket->parameters - bucket->vectors, bucket->vectors})
      if (elements > 0) shards.push_back(elements / sharers(*bucket));
  return shards;
}

// DeepSpeed's stages 1 and 2 have the gradients of a shard in one tensor of 32 bits for the update.
bool FlatUpdate::flattens() const {
  const Strategy& s = writer_.input().strategy;
  return shares_ && !s.distributed.used;
}

// A shard's gradient is flattened in its own type, at stage 1 at once, and cast to fp32; then only
// the cast one is left.
FlatUpdate::Prepared FlatUpdate::prepare_gradient(double shard, double tensors, double waiting) {
  const Strategy& s = writer_.input().strategy;
  const double own = gradient_bytes(s);
  const bool cast = !keeps_whole_gradient(s) && own < 4;
  const Mark flat = writer_.run(
      {{"flatten", KernelClass::memory, 0, (2 * own + (cast ? own + 4 : 0)) * shard, 1 + tensors}},
      false, Cause::optimizer, "flatten_gradient");
  const double flat_bytes = s.sharding == Sharding::zero2 ? own * shard : 0;
  const double fp32 = cast ? 4 * shard : 0;
  writer_.allocate(flat, Held::flat_gradient, flat_bytes);
  writer_.allocate(flat, Held::fp32_gradient, fp32);
  writer_.release(flat, Held::own_gradients, waiting);
  if (!cast) return {.flat = flat_bytes};
  writer_.release(flat, Held::flat_gradient, flat_bytes);
  return {.fp32 = fp32};
}

// A flat shard is one tensor; stage 0 has all of them.
void FlatUpdate::update_group(double shard, double tensors, double waiting) {
  const double updated = shares_ ? 1 : tensors;
  const UpdateCost cost = update_cost(
      writer_.rank(), {shard, updated, shares_ ? shard : writer_.rank().tensors.largest});
  double bytes = optimizer_traffic_bytes(writer_.rank()) * shard;
  Prepared gradient;
  if (flattens()) {
    gradient = prepare_gradient(shard, tensors, waiting);
    bytes += writer_.input().stack.operators.zero_update.scale_and_copy * shard;
  }
  const Mark update = writer_.run({update_row(cost, bytes, 3)}, false, Cause::optimizer, "update");
  hold_while_updating(writer_, update, cost);
  writer_.release(update, Held::fp32_gradient, gradient.fp32);
  writer_.release(update, Held::flat_gradient, gradient.flat);
  if (!flattens()) writer_.release(update, Held::own_gradients, waiting);
  stop_behind_update(writer_, updated);
}

// Updates on the host. Nothing of the GPU runs meanwhile: the host thread itself is in the update.
void FlatUpdate::update_on_host(double shard) {
  const double more = flattens() ? writer_.input().stack.operators.zero_update.host : 0;
  const Mark update = update_shard_on_host(writer_, shard, more, writer_.last_compute());
  writer_.traffic(Plan::to_device, {writer_.number_bytes() * shard}, Cause::offload_transfer,
                  "parameters_to_device", {update});
}

void FlatUpdate::gather() {
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark ready = writer_.host({0}, Cause::optimizer, "updated", {writer_.last_compute()});
  for (const GradientBucket* bucket : buckets_.all()) {
    if (bucket->parameters <= 0) continue;
    Mark gathered = ready;
    if (bucket->sharers > 1)
      gathered = writer_.collective(
          buckets_.is_of_experts(*bucket) ? Plan::expert_gather : Plan::all_gather,
          {writer_.number_bytes() * bucket->parameters}, Stream::gather, Cause::gather_bytes,
          "gather_updated", {writer_.last_compute(), writer_.last_copy()});
    writer_.host(bucket->tensors * writer_.input().stack.host.repoint.value / core,
                 Cause::optimizer, "repoint_tensors", {gathered});
  }
}

}  // namespace stepsim
