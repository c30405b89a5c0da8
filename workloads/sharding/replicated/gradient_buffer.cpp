#include "workloads/sharding/replicated/gradient_buffer.hpp"

#include <algorithm>

#include "workloads/sharding/replicated/replicated.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

// DistributedDataParallelConfig has 40 million numbers, and no less than a million for each rank.
double bucket_limit(double sharers) {
  return std::max(40e6, 1e6 * sharers);
}

}  // namespace

GradientBuffer::GradientBuffer(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits), buckets_(writer, visits), update_(writer, buckets_) {
  if (writer.input().strategy.distributed.overlap_gather) plan_gathers();
}

// Each bucket of updated parameters is awaited before its first use, and the next is asked for.
void GradientBuffer::before(std::size_t visit) {
  if (met_ >= updated_.size() || updated_[met_].first_use != visit) return;
  if (met_ == 0) gather_bucket(0);
  for (const Mark arrival : updated_[met_].arrivals) writer_.compute_after(arrival);
  ++met_;
  if (met_ < updated_.size()) gather_bucket(met_);
}

void GradientBuffer::after(std::size_t visit, bool last_micro_batch) {
  const Visit& now = visits_[visit];
  if (now.phase == Phase::backward && !now.unit->tensors.empty() && now.unit->trained)
    add(*now.unit, last_micro_batch);
}

// The embedding has a gradient of its own, and the head makes room for one.
void GradientBuffer::add(const Unit& unit, bool last_micro_batch) {
  const StepInput& input = writer_.input();
  const double own =
      unit.kind == TensorClass::embedding ? writer_.number_bytes() * unit.elements() : 0;
  writer_.allocate(writer_.last_compute(), Held::gradients, own);
  const auto tensors = static_cast<double>(unit.tensors.size());
  writer_.host(writer_.scaled(tensors * input.stack.host.shard_tensor.value), Cause::module_hooks,
               "gradient_hook");
  writer_.run(Distributed::gradient_kernels(input, unit), true, Cause::gradient_reduce,
              "accumulate");
  writer_.release(writer_.last_compute(), Held::gradients, own);
  if (!last_micro_batch) return;
  GradientBucket& bucket = buckets_.of(unit);
  bucket.waiting += unit.elements();
  if (input.strategy.distributed.overlap_reduce && bucket.waiting >= bucket_limit(bucket.sharers))
    scatter(bucket);
}

void GradientBuffer::scatter(GradientBucket& bucket) {
  const Bytes bytes{gradient_bytes(writer_.input().strategy) * bucket.waiting};
  bucket.waiting = 0;
  const double copies = writer_.mesh().replicas;
  if (bucket.sharers <= 1 && copies <= 1) return;
  reduction_ = writer_.last_compute();
  if (bucket.sharers > 1)
    reduction_ = writer_.collective(
        buckets_.is_of_experts(bucket) ? Plan::expert_scatter : Plan::reduce_scatter, bytes,
        Stream::reduce, Cause::gradient_reduce, "reduce_bucket", {reduction_});
  if (copies > 1)
    reduction_ =
        writer_.collective(Plan::replica_reduce, {bytes.value / bucket.sharers}, Stream::replicas,
                           Cause::gradient_reduce, "reduce_copies", {reduction_});
  outstanding_ = true;
}

void GradientBuffer::finish_backward(bool last_micro_batch) {
  if (!last_micro_batch) return;
  for (GradientBucket* bucket : buckets_.all())
    if (bucket->waiting > 0) scatter(*bucket);
  if (outstanding_) writer_.compute_after(reduction_);
  outstanding_ = false;
}

void GradientBuffer::finish_step(std::optional<Mark> norm) {
  update_.update(norm, 0);
  if (updated_.empty()) update_.gather();
}

void GradientBuffer::plan_gathers() {
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    const Visit& visit = visits_[i];
    if (visit.phase != Phase::forward || visit.frozen || visit.unit->elements() <= 0) continue;
    const bool full = updated_.empty() || updated_.back().dense + updated_.back().experts >=
                                              bucket_limit(buckets_.dense.sharers);
    if (full) updated_.push_back({.first_use = i});
    double& sum = buckets_.is_of_experts(buckets_.of(*visit.unit)) ? updated_.back().experts
                                                                   : updated_.back().dense;
    sum += visit.unit->trained_elements();
  }
}

void GradientBuffer::gather_bucket(std::size_t number) {
  Updated& updated = updated_[number];
  const auto gather = [&](Plan plan, double elements, double sharers) {
    if (elements > 0 && sharers > 1)
      updated.arrivals.push_back(writer_.collective(plan, {writer_.number_bytes() * elements},
                                                    Stream::gather, Cause::gather_bytes,
                                                    "gather_updated", {writer_.last_host()}));
  };
  gather(Plan::all_gather, updated.dense, buckets_.dense.sharers);
  gather(Plan::expert_gather, updated.experts, buckets_.experts.sharers);
}

}  // namespace stepsim
