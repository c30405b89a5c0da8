#include "workloads/sharding/replicated/buckets.hpp"

namespace stepsim {

GradientBuckets::GradientBuckets(const StepWriter& writer, const std::vector<Visit>& visits)
    : splits_experts_(sends_tokens(writer.input().strategy)) {
  for (const Visit& visit : visits) {
    if (visit.phase != Phase::forward || visit.frozen || !visit.unit->trained) continue;
    GradientBucket& bucket = of(*visit.unit);
    bucket.parameters += visit.unit->elements();
    if (visit.unit->kind == TensorClass::norm) bucket.vectors += visit.unit->elements();
    bucket.tensors += static_cast<double>(visit.unit->tensors.size());
  }
  dense.sharers = writer.sharers();
  experts.sharers = writer.expert_sharers();
}

GradientBucket& GradientBuckets::of(const Unit& unit) {
  return splits_experts_ && unit.kind == TensorClass::expert ? experts : dense;
}

}  // namespace stepsim
