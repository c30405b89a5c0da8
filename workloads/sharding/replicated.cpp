#include <algorithm>
#include <cmath>

#include "workloads/program/tensors.hpp"
#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

Seconds gradient_hook(const StepInput& input, double tensors) {
  const auto& host = input.stack.host;
  const Seconds counting = tensors * host.count_visit.value;
  return host.gradient_hook.value + (input.strategy.zero.counts_in_hooks ? counting : Seconds{0});
}

Replicated::Replicated(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits) {
  const Strategy& strategy = writer.input().strategy;
  split_experts_ = sends_tokens(strategy);
  here_ = states_on_device(writer.input());
  for (const Visit& visit : visits) {
    if (visit.phase != Phase::forward || visit.frozen) continue;
    Bucket& bucket = bucket_of(*visit.unit);
    if (!visit.unit->trained) continue;
    bucket.parameters += visit.unit->elements();
    if (visit.unit->kind == TensorClass::norm) bucket.vectors += visit.unit->elements();
    bucket.tensors += static_cast<double>(visit.unit->tensors.size());
  }
  dense_.sharers = writer.sharers();
  experts_.sharers = writer.expert_sharers();
  if (strategy.distributed.used && strategy.distributed.overlap_gather) plan_gathers();
}

Replicated::Bucket& Replicated::bucket_of(const Unit& unit) {
  return split_experts_ && unit.kind == TensorClass::expert ? experts_ : dense_;
}

// Each bucket of updated parameters is awaited before its first use, and the next is asked for.
void Replicated::before(std::size_t visit) {
  if (met_ >= updated_.size() || updated_[met_].first_use != visit) return;
  if (met_ == 0) gather_bucket(0);
  for (const Mark arrival : updated_[met_].arrivals) writer_.compute_after(arrival);
  ++met_;
  if (met_ < updated_.size()) gather_bucket(met_);
}

// Stage 2 reduces every micro-batch, the others at the boundary.
bool Replicated::reduces(bool last_micro_batch) const {
  return last_micro_batch || writer_.input().strategy.sharding == Sharding::zero2;
}

// Every rank keeps all gradients until the boundary, unless each micro-batch reduces them.
bool Replicated::keeps_all_gradients() const {
  const Strategy& s = writer_.input().strategy;
  return s.sharding == Sharding::zero0 ||
         (s.sharding == Sharding::zero1 && writer_.input().job.accumulation > 1 &&
          !keeps_whole_gradient(s));
}

void Replicated::after(std::size_t visit, bool last_micro_batch) {
  const Visit& now = visits_[visit];
  if (now.phase != Phase::backward || now.unit->tensors.empty() || !now.unit->trained) return;
  if (writer_.input().strategy.distributed.used) return add_to_buffer(*now.unit, last_micro_batch);
  Bucket& bucket = bucket_of(*now.unit);
  const double limit = writer_.input().strategy.zero.reduce_bucket;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark made = writer_.last_compute();
  const bool keeps = keeps_all_gradients();
  const bool added = keeps && writer_.context.micro_batch > 0;  // to those of the last time
  for (const double elements : now.unit->tensors) {
    const double tensors = dense_.tensors + experts_.tensors;
    writer_.host(gradient_hook(writer_.input(), tensors) / core, Cause::module_hooks,
                 "gradient_hook");
    const double bytes = half * elements;
    writer_.allocate(made, "gradients", bytes);
    if (writer_.input().strategy.update_in_backward) {
      update_now(elements);
      writer_.release(writer_.last_compute(), "gradients", bytes);
      continue;
    }
    if (added) writer_.release(made, "gradients", bytes);
    if (keeps && !added) kept_ += bytes;
    Mark used = made;
    if (reduces(last_micro_batch)) {
      if (bucket.waiting > 0 && bucket.waiting + elements > limit) reduce(bucket, last_micro_batch);
      bucket.waiting += elements;
      // Too large for the bucket: it goes as it is.
      used = elements > limit ? reduce(bucket, last_micro_batch) : copy_to_bucket(elements);
    }
    const bool points_into_bucket =
        writer_.input().strategy.sharding != Sharding::zero0 && last_micro_batch;
    if (keeps && !points_into_bucket) continue;
    writer_.release(used, "gradients", bytes);
    if (keeps) kept_ -= bytes;
  }
}

// A tensor's own optimizer runs behind its gradient, which nobody needs any more.
void Replicated::update_now(double elements) {
  const Strategy& s = writer_.input().strategy;
  const UpdateCost cost =
      update_cost(writer_.input().stack.operators.adamw, s, {elements, 1, elements});
  const double bytes = optimizer_traffic_bytes(s) * elements;
  const Mark updated = writer_.run({update_row(cost, bytes, 3)}, true, Cause::optimizer, "update");
  writer_.allocate(updated, "update_temporary", cost.temporary);
  writer_.release(updated, "update_temporary", cost.temporary);
}

// The buckets exist from the first gradient of a backward pass to its end.
Mark Replicated::copy_to_bucket(double elements) {
  const Mark copied = writer_.run({{"bucket_copy", KernelClass::memory, 0, 2 * half * elements, 1}},
                                  true, Cause::gradient_reduce, "bucket_copy");
  if (buffers_ > 0) return copied;
  const ZeroKeys& keys = writer_.input().strategy.zero;
  buffers_ = half * keys.reduce_bucket * (keys.overlap_comm ? 2 : 1);
  writer_.allocate(copied, "bucket", buffers_);
  return copied;
}

// A rank's own gradients have one buffer, from the first that is reduced to the update.
void Replicated::keep_own_gradients(Mark since) {
  const StepInput& input = writer_.input();
  const Strategy& s = input.strategy;
  if (owned_ > 0 || s.sharding == Sharding::zero0 || keeps_whole_gradient(s)) return;
  owned_ = here_ * gradient_bytes(s) * shares_of(input).updated;
  writer_.allocate(since, "gradients", owned_);
}

void Replicated::give_up_gradients(Mark at) {
  writer_.release(at, "gradients", kept_ + owned_);
  kept_ = owned_ = 0;
}

// One all-reduce of the bucket; each rank keeps its slice. With overlap two buckets alternate, so
// the next one waits for the one before last.
Mark Replicated::reduce(Bucket& bucket, bool last_micro_batch) {
  const Bytes bytes{half * bucket.waiting};
  bucket.waiting = 0;
  Mark done = writer_.last_compute();
  if (bucket.sharers > 1) {
    const bool overlap = writer_.input().strategy.zero.overlap_comm;
    if (overlap && outstanding_) writer_.compute_after(reduction_);
    const Mark flat = writer_.run({{"flatten", KernelClass::memory, 0, 3 * bytes.value, 3}}, true,
                                  Cause::gradient_reduce, "flatten");
    reduction_ =
        writer_.collective(&bucket == &experts_ ? World::expert_reduce : World::all_reduce, bytes,
                           Stream::reduce, Cause::gradient_reduce, "reduce_bucket", {flat});
    writer_.allocate(flat, "reduce_input", bytes.value);
    writer_.release(reduction_, "reduce_input", bytes.value);
    done = reduction_;
    outstanding_ = true;
    if (!overlap) writer_.compute_after(reduction_);
  }
  keep_own_gradients(done);
  if (here_ < 1)
    to_host((1 - here_) * bytes.value / half / bucket.sharers, bucket, last_micro_batch);
  return done;
}

// The rank's own gradients go to pinned host memory in fp32, tensor by tensor; a check of each for
// overflow makes the host wait. Before the last micro-batch their sum waits there in 16 bits, and
// comes up to be added to.
void Replicated::to_host(double elements, const Bucket& bucket, bool last_micro_batch) {
  const auto copy = [&](World way, double bytes, std::string_view name, Mark ready) {
    return writer_.traffic(way, {bytes * elements}, Cause::offload_transfer, name, {ready});
  };
  Mark source = bucket.sharers > 1 ? reduction_ : writer_.last_compute();
  const bool summed = writer_.input().strategy.sharding == Sharding::zero2;
  if (summed && writer_.context.micro_batch > 0)
    source = copy(World::to_device, half, "gradient_from_host", source);
  if (!last_micro_batch) {
    copy(World::to_host, half, "gradient_to_host", source);
    return;
  }
  const double tensors = std::max(1.0, bucket.tensors * elements / bucket.parameters);
  writer_.host(tensors * writer_.input().stack.host.sync.value, Cause::offload_transfer,
               "check_overflow", {source});
  copy(World::to_host, 4, "gradient_to_host", source);
}

void Replicated::finish_backward(bool last_micro_batch) {
  if (writer_.input().strategy.distributed.used) {
    if (last_micro_batch) scatter_rest();
    return;
  }
  if (reduces(last_micro_batch))
    for (Bucket* bucket : {&dense_, &experts_})
      if (bucket->waiting > 0) reduce(*bucket, last_micro_batch);
  if (outstanding_) writer_.host({0}, Cause::gradient_reduce, "reduce_done", {reduction_});
  outstanding_ = false;
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gradient_reduce, "synchronize");
  writer_.release(writer_.last_host(), "bucket", buffers_);
  buffers_ = 0;
}

void Replicated::step() {
  const Strategy& s = writer_.input().strategy;
  std::optional<Mark> norm;
  if (here_ > 0 && !s.update_in_backward)
    norm = writer_.collective(World::signal, {4}, Stream::reduce, Cause::optimizer, "norm",
                              {own_norm()});
  finish_step(norm);
}

// What the optimizer of a rank updates.
Replicated::Owned Replicated::owned() const {
  const bool sharded = writer_.input().strategy.sharding != Sharding::zero0;
  Owned sum;
  for (const Bucket* bucket : {&dense_, &experts_}) {
    sum.elements += bucket->parameters / (sharded ? bucket->sharers : 1);
    sum.tensors += bucket->tensors / (sharded ? bucket->sharers : 1);
  }
  return sum;
}

// Per owned tensor a cast and a reduction.
Mark Replicated::own_norm() {
  writer_.context = {Phase::optimizer, -1, -1};
  const auto [elements, tensors] = owned();
  return writer_.run(
      {{"norm", KernelClass::memory, 0, half * here_ * elements, 3 * here_ * tensors}}, false,
      Cause::optimizer, "gradient_norm");
}

void Replicated::finish_step(std::optional<Mark> norm) {
  writer_.context = {Phase::optimizer, -1, -1};
  const Strategy& s = writer_.input().strategy;
  const auto [elements, tensors] = owned();
  if (norm) {
    writer_.host(writer_.input().stack.host.sync.value, Cause::optimizer, "read_norm", {*norm});
    // One flat shard after the other.
    for (const double group : group_shards())
      update_group(here_ * group, here_ * tensors * group / elements);
  }
  if (here_ < 1) update_on_host((1 - here_) * elements);
  give_up_gradients(writer_.last_compute());
  if (s.sharding != Sharding::zero0) gather_updated();
}

// Elements that a rank updates of each parameter group: what decays, what does not, and experts.
std::vector<double> Replicated::group_shards() const {
  const bool sharded = writer_.input().strategy.sharding != Sharding::zero0;
  std::vector<double> shards;
  for (const Bucket* bucket : {&dense_, &experts_})
    for (const double elements : {bucket->parameters - bucket->vectors, bucket->vectors})
      if (elements > 0) shards.push_back(elements / (sharded ? bucket->sharers : 1));
  return shards;
}

// A shard's gradient is flattened in its own type, at stage 1 at once, and cast to fp32; both exist
// while the update runs.
void Replicated::update_group(double shard, double tensors) {
  const Strategy& s = writer_.input().strategy;
  const double traffic = optimizer_traffic_bytes(s);
  // A flat shard is one tensor; stage 0 has all of them.
  const double updated = s.sharding == Sharding::zero0 ? tensors : 1;
  const bool whole = s.sharding == Sharding::zero0;
  const UpdateCost cost =
      update_cost(writer_.input().stack.operators.adamw, s,
                  {shard, updated, whole ? tensors_of(writer_.input()).largest : shard});
  std::vector<KernelRow> rows{update_row(cost, traffic * shard, 3)};
  if (s.sharding != Sharding::zero0 && !s.distributed.used)
    rows.push_back({"flatten", KernelClass::memory, 0, (2 * half + 4) * shard, 2 + tensors});
  const Mark update = writer_.run(rows, false, Cause::optimizer, "update");
  const bool cast = s.sharding != Sharding::zero0 && !keeps_whole_gradient(s);
  const double flat = s.sharding == Sharding::zero2 ? gradient_bytes(s) * shard : 0;
  const double fp32 = cast && flat < 4 * shard ? 4 * shard : 0;
  writer_.allocate(update, "flat_gradient", flat);
  writer_.allocate(update, "fp32_gradient", fp32);
  writer_.allocate(update, "update_temporary", cost.temporary);
  writer_.release(update, "update_temporary", cost.temporary);
  writer_.release(update, "fp32_gradient", fp32);
  writer_.release(update, "flat_gradient", flat);
  stop_behind_update(writer_, updated);
}

// Nothing of the GPU runs meanwhile: the host thread itself is in the update.
void Replicated::update_on_host(double shard) {
  const Mark update = update_shard_on_host(writer_, shard, writer_.last_compute());
  writer_.traffic(World::to_device, {half * shard}, Cause::offload_transfer, "parameters_to_device",
                  {update});
}

// The updated 16-bit parameters come together again; nothing overlaps it.
void Replicated::gather_updated() {
  if (!updated_.empty()) return;  // beside the forward pass
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark ready = writer_.host({0}, Cause::optimizer, "updated", {writer_.last_compute()});
  for (const Bucket* bucket : {&dense_, &experts_}) {
    if (bucket->parameters <= 0) continue;
    Mark gathered = ready;
    if (bucket->sharers > 1)
      gathered =
          writer_.collective(bucket == &experts_ ? World::expert_gather : World::all_gather,
                             {half * bucket->parameters}, Stream::gather, Cause::gather_bytes,
                             "gather_updated", {writer_.last_compute(), writer_.last_copy()});
    writer_.host(bucket->tensors * writer_.input().stack.host.repoint.value / core,
                 Cause::optimizer, "repoint_tensors", {gathered});
  }
}

Mark update_shard_on_host(StepWriter& writer, double elements, Mark ready) {
  const double bytes = elements * host_adam_bytes(writer.input());
  const Mark update =
      writer.traffic(World::cpu_update, {bytes}, Cause::cpu_optimizer, "cpu_adam", {ready});
  writer.host({0}, Cause::cpu_optimizer, "cpu_adam_done", {update});
  return update;
}

}  // namespace stepsim
