// Megatron's distributed optimizer (Megatron-Core, distributed/param_and_grad_buffer.py), and
// InternEvo's own: one buffer of all gradients, to which products add; its buckets are
// reduce-scattered at the last micro-batch, and the updated parameters are gathered before the next
// forward pass needs them.
#include <algorithm>

#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

// DistributedDataParallelConfig: 40 million numbers, and no less than a million for each rank.
double bucket_limit(double sharers) {
  return std::max(40e6, 1e6 * sharers);
}

}  // namespace

// The product for the weights reads and writes the buffer instead of writing a gradient of its own.
void Replicated::add_to_buffer(const Unit& unit, bool last_micro_batch) {
  const StepInput& input = writer_.input();
  const double more = 2 * gradient_bytes(input.strategy) - half;
  const auto tensors = static_cast<double>(unit.tensors.size());
  writer_.host(writer_.scaled(tensors * input.stack.host.shard_tensor.value), Cause::module_hooks,
               "gradient_hook");
  writer_.run({{"accumulate", KernelClass::memory, 0, more * unit.elements(), 0}}, true,
              Cause::gradient_reduce, "accumulate");
  if (!last_micro_batch) return;
  Bucket& bucket = bucket_of(unit);
  bucket.waiting += unit.elements();
  if (input.strategy.distributed.overlap_reduce && bucket.waiting >= bucket_limit(bucket.sharers))
    scatter(bucket);
}

void Replicated::scatter(Bucket& bucket) {
  const Bytes bytes{gradient_bytes(writer_.input().strategy) * bucket.waiting};
  bucket.waiting = 0;
  const double copies = writer_.mesh().replicas;
  if (bucket.sharers <= 1 && copies <= 1) return;
  reduction_ = writer_.last_compute();
  if (bucket.sharers > 1)
    reduction_ = writer_.collective(
        &bucket == &experts_ ? World::expert_scatter : World::reduce_scatter, bytes, Stream::reduce,
        Cause::gradient_reduce, "reduce_bucket", {reduction_});
  if (copies > 1)
    reduction_ =
        writer_.collective(World::replica_reduce, {bytes.value / bucket.sharers}, Stream::replicas,
                           Cause::gradient_reduce, "reduce_copies", {reduction_});
  outstanding_ = true;
}

void Replicated::scatter_rest() {
  for (Bucket* bucket : {&dense_, &experts_})
    if (bucket->waiting > 0) scatter(*bucket);
  if (outstanding_) writer_.compute_after(reduction_);
  outstanding_ = false;
}

void Replicated::plan_gathers() {
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    const Visit& visit = visits_[i];
    if (visit.phase != Phase::forward || visit.frozen || visit.unit->elements() <= 0) continue;
    const bool full = updated_.empty() || updated_.back().dense + updated_.back().experts >=
                                              bucket_limit(dense_.sharers);
    if (full) updated_.push_back({.first_use = i});
    double& sum =
        &bucket_of(*visit.unit) == &experts_ ? updated_.back().experts : updated_.back().dense;
    sum += visit.unit->trained_elements();
  }
}

void Replicated::gather_bucket(std::size_t number) {
  Updated& updated = updated_[number];
  const auto gather = [&](World world, double elements, double sharers) {
    if (elements > 0 && sharers > 1)
      updated.arrivals.push_back(writer_.collective(world, {half * elements}, Stream::gather,
                                                    Cause::gather_bytes, "gather_updated",
                                                    {writer_.last_host()}));
  };
  gather(World::all_gather, updated.dense, dense_.sharers);
  gather(World::expert_gather, updated.experts, experts_.sharers);
}

}  // namespace stepsim
