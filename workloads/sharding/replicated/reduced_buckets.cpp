#include "workloads/sharding/replicated/reduced_buckets.hpp"

#include <algorithm>

#include "workloads/collectives/plan.hpp"
#include "workloads/sharding/states.hpp"
#include "workloads/sharding/updates.hpp"

namespace stepsim {

bool keeps_all_buckets(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  return s.sharding == Sharding::zero0 && !s.master_weights && rank.mesh.shard > 1 &&
         s.pipeline_parallel.size <= 1;
}

ReducedBuckets::ReducedBuckets(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits), buckets_(writer, visits), update_(writer, buckets_) {
  constexpr Rank first = 0;
  if (update_.on_device() < 1)
    copy_alone_ =
        plan_copy(writer.input().cluster, Copy::d2h, std::span(&first, 1)).candidates.front().cost;
}

// Stage 2 reduces every micro-batch, the others at the boundary.
bool ReducedBuckets::reduces(bool last_micro_batch) const {
  return last_micro_batch || writer_.input().strategy.sharding == Sharding::zero2;
}

// Returns whether one rank has whole gradients: there is nobody to reduce them with.
bool ReducedBuckets::is_alone(const GradientBucket& bucket) const {
  return bucket.sharers <= 1 && writer_.input().strategy.sharding == Sharding::zero0;
}

// Returns whether every rank keeps all gradients until the boundary; it does unless each
// micro-batch reduces them.
bool ReducedBuckets::keeps_all_gradients() const {
  const Strategy& s = writer_.input().strategy;
  return s.sharding == Sharding::zero0 ||
         (s.sharding == Sharding::zero1 && writer_.input().job.accumulation > 1 &&
          !keeps_whole_gradient(s));
}

// Stages of a pipeline reduce when all of their passes are over, and what they sent is under way.
bool ReducedBuckets::behind_stages() const {
  return writer_.input().strategy.pipeline_parallel.size > 1;
}

// Then gradients of each micro-batch are added to a buffer in 32 bits, and are zeros again.
bool ReducedBuckets::adds_in_fp32() const {
  return behind_stages() && keeps_whole_gradient(writer_.input().strategy);
}

void ReducedBuckets::after(std::size_t visit, bool last_micro_batch) {
  const Visit& now = visits_[visit];
  if (now.phase != Phase::backward || now.unit->tensors.empty() || !now.unit->trained) return;
  GradientBucket& bucket = buckets_.of(*now.unit);
  const double limit = writer_.input().strategy.zero.reduce_bucket;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark made = writer_.last_compute();
  const bool keeps = keeps_all_gradients();
  const bool added = keeps && writer_.context.micro_batch > 0;  // to those of the last time
  for (const double elements : now.unit->tensors) {
    writer_.host(gradient_hook(writer_.input(), buckets_.tensors()) / core, Cause::module_hooks,
                 "gradient_hook");
    const double bytes = writer_.number_bytes() * elements;
    writer_.allocate(made, Held::gradients, bytes);
    if (writer_.input().strategy.update_in_backward) {
      update_now(elements);
      writer_.release(writer_.last_compute(), Held::gradients, bytes);
      continue;
    }
    if (added) writer_.release(made, Held::gradients, bytes);
    if (keeps && !added) kept_ += bytes;
    Mark used = made;
    if (adds_in_fp32())
      used = writer_.run({{"add_gradient", KernelClass::memory, 0,
                           (2 * writer_.number_bytes() + 2 * 4) * elements, 2}},
                         true, Cause::gradient_reduce, "add_gradient");
    if (reduces(last_micro_batch) && behind_stages()) {
      bucket.waiting += elements;
    } else if (reduces(last_micro_batch) && !is_alone(bucket)) {
      if (bucket.waiting > 0 && bucket.waiting + elements > limit) reduce(bucket, last_micro_batch);
      bucket.waiting += elements;
      // A gradient that is too large for the bucket goes as it is.
      used = elements > limit ? reduce(bucket, last_micro_batch) : copy_to_bucket(elements);
    }
    const bool points_into_bucket = writer_.input().strategy.sharding != Sharding::zero0 &&
                                    last_micro_batch && !behind_stages();
    if (keeps && !points_into_bucket) continue;
    writer_.release(used, Held::gradients, bytes);
    if (keeps) kept_ -= bytes;
  }
}

// A tensor's own optimizer runs behind its gradient, which nobody needs any more.
void ReducedBuckets::update_now(double elements) {
  const UpdateCost cost = update_cost(writer_.rank(), {elements, 1, elements});
  const double bytes = optimizer_traffic_bytes(writer_.rank()) * elements;
  const Mark updated = writer_.run({update_row(cost, bytes, 3)}, true, Cause::optimizer, "update");
  hold_while_updating(writer_, updated, cost);
}

// The buckets exist from the first gradient of a backward pass to its end.
Mark ReducedBuckets::copy_to_bucket(double elements) {
  const Mark copied = writer_.run(
      {{"bucket_copy", KernelClass::memory, 0, 2 * writer_.number_bytes() * elements, 1}}, true,
      Cause::gradient_reduce, "bucket_copy");
  if (buffers_ > 0 || keeps_all_buckets(writer_.rank())) return copied;
  const ZeroKeys& keys = writer_.input().strategy.zero;
  buffers_ = writer_.number_bytes() * keys.reduce_bucket * (keys.overlap_comm ? 2 : 1);
  writer_.allocate(copied, Held::bucket, buffers_);
  return copied;
}

// A rank's own gradients have one buffer, from the first that is reduced to the update. Those of
// each further micro-batch come into another one.
void ReducedBuckets::keep_own_gradients(Mark since) {
  const Strategy& s = writer_.input().strategy;
  if (s.sharding == Sharding::zero0 || keeps_whole_gradient(s)) return;
  double& bytes = kept_from_before_ ? arriving_ : owned_;
  if (bytes > 0) return;
  bytes = update_.on_device() * gradient_bytes(s) * writer_.rank().shares.updated;
  writer_.allocate(since, Held::own_gradients, bytes);
}

void ReducedBuckets::add_to_own_gradients() {
  kept_from_before_ = owned_ > 0;
  if (arriving_ <= 0) return;
  double tensors = 0;
  for (const GradientBucket* bucket : buckets_.all()) tensors += bucket->tensors / bucket->sharers;
  const Mark added =
      writer_.run({{"add_gradients", KernelClass::memory, 0, 3 * arriving_, tensors}}, true,
                  Cause::gradient_reduce, "add_gradients");
  writer_.release(added, Held::own_gradients, arriving_);
  arriving_ = 0;
}

// Writes one all-reduce of the bucket; each rank keeps its slice. With overlap two buckets
// alternate, so the next one waits for the one before last.
Mark ReducedBuckets::reduce(GradientBucket& bucket, bool last_micro_batch) {
  const Strategy& s = writer_.input().strategy;
  const double elements =
      behind_stages() ? std::min(s.zero.reduce_bucket, bucket.waiting) : bucket.waiting;
  const double width = behind_stages() ? gradient_bytes(s) : writer_.number_bytes();
  const Bytes bytes{width * elements};
  bucket.waiting -= elements;
  Mark done = writer_.last_compute();
  if (bucket.sharers > 1) {
    const bool overlap = writer_.input().strategy.zero.overlap_comm;
    if (overlap && outstanding_) writer_.compute_after(reduction_);
    if (s.sharding != Sharding::zero0 && !behind_stages())
      writer_.spend(writer_.scaled(writer_.input().stack.host.reduce_calls.value),
                    Cause::module_hooks);
    const Mark flat = writer_.run({{"flatten", KernelClass::memory, 0, 3 * bytes.value, 3}}, true,
                                  Cause::gradient_reduce, "flatten");
    reduction_ =
        writer_.collective(buckets_.is_of_experts(bucket) ? Plan::expert_reduce : Plan::all_reduce,
                           bytes, Stream::reduce, Cause::gradient_reduce, "reduce_bucket", {flat});
    writer_.allocate(flat, Held::reduce_input, bytes.value);
    writer_.release(reduction_, Held::reduce_input, bytes.value);
    done = reduction_;
    outstanding_ = true;
    if (!overlap || writer_.input().strategy.zero.waits_for_reductions)
      writer_.compute_after(reduction_);
  }
  keep_own_gradients(done);
  if (update_.on_device() < 1)
    to_host((1 - update_.on_device()) * elements, bucket, last_micro_batch);
  return done;
}

// Returns the seconds of copies made tensor by tensor.
Seconds ReducedBuckets::copies(double elements, double width, double tensors) const {
  const StepInput& input = writer_.input();
  const double share = input.strategy.offload.pins ? 1 : input.cluster.node.host.pageable.number();
  return {tensors * copy_alone_.fixed.value + width * elements * copy_alone_.per_byte / share};
}

// Gradients go to host memory in fp32, tensor by tensor; a norm and a check of each make the host
// wait. Before the last micro-batch their sum waits there in 16 bits, and comes up to be added to.
// A bucket belongs to one rank, or to two: the others wait for it in their next reduction, and the
// owners of later buckets do the same to it. All ranks are one here, so each waits for all of a
// bucket's copies, of which its own are a share.
void ReducedBuckets::to_host(double elements, const GradientBucket& bucket, bool last_micro_batch) {
  const StepInput& input = writer_.input();
  // Reduce-scattered gradients are each rank's own.
  const bool scattered = keeps_whole_gradient(input.strategy);
  const double at_once = input.strategy.zero.round_robin || scattered ? bucket.sharers : 1;
  const double waited_for = elements / at_once;
  const double tensors = std::max(1.0, bucket.tensors * waited_for / bucket.parameters);
  const auto copy = [&](Plan way, double width, std::string_view name, Mark ready) {
    return writer_.traffic(way, {width * elements / bucket.sharers}, Cause::offload_transfer, name,
                           {ready});
  };
  const auto stop_for_copies = [&](double width, Mark ready) {
    if (!input.strategy.offload.pins && !scattered)
      writer_.host(copies(waited_for, width, tensors), Cause::offload_transfer, "pageable_copies",
                   {ready});
  };
  Mark source = bucket.sharers > 1 ? reduction_ : writer_.last_compute();
  const bool summed = input.strategy.sharding == Sharding::zero2;
  const bool first = writer_.context.micro_batch == 0;
  if (summed && !first) {
    stop_for_copies(writer_.number_bytes(), source);
    source = copy(Plan::to_device, writer_.number_bytes(), "gradient_from_host", source);
  }
  if (!last_micro_batch) {
    if (!first && input.strategy.zero.loses_sums) return;
    stop_for_copies(writer_.number_bytes(), source);
    copy(Plan::to_host, writer_.number_bytes(), "gradient_to_host", source);
    return;
  }
  if (scattered) {
    writer_.host(tensors * input.stack.host.sync.value, Cause::offload_transfer, "check_overflow",
                 {source});
    copy(Plan::to_host, 4, "gradient_to_host", source);
    return;
  }
  // Each check waits for the copy before it, so pinned memory does not let the host go on either.
  constexpr double norm_and_check = 8;  // operators: double, norm, float, isnan, isinf, or, ...
  const Seconds launch =
      input.stack.host.plain_launch.value / input.cluster.node.host.core_speed.number();
  writer_.host(tensors * (norm_and_check * launch + input.stack.host.sync.value) +
                   copies(waited_for, 4, tensors),
               Cause::offload_transfer, "check_and_copy", {source});
  copy(Plan::to_host, 4, "gradient_to_host", source);
}

void ReducedBuckets::finish_backward(bool last_micro_batch) {
  if (reduces(last_micro_batch))
    for (GradientBucket* bucket : buckets_.all())
      while (bucket->waiting > 0) reduce(*bucket, last_micro_batch);
  if (outstanding_) writer_.host({0}, Cause::gradient_reduce, "reduce_done", {reduction_});
  outstanding_ = false;
  add_to_own_gradients();
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gradient_reduce, "synchronize");
  writer_.release(writer_.last_host(), Held::bucket, buffers_);
  buffers_ = 0;
}

void ReducedBuckets::finish_step(std::optional<Mark> norm) {
  update_.update(norm, owned_);
  writer_.release(writer_.last_compute(), Held::gradients, kept_);
  kept_ = owned_ = 0;
  kept_from_before_ = false;
  if (writer_.input().strategy.sharding != Sharding::zero0) update_.gather();
}

}  // namespace stepsim
