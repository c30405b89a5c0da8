#include "workloads/sharding/states.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/whole_matrices.hpp"

namespace stepsim {
namespace {

// Returns the elements of the largest sub-group.
double largest_sub_group(const RankPart& rank) {
  const double shard = rank.shares.updated, size = rank.input.strategy.zero.sub_group;
  return size <= 0 ? rank.tensors.largest * shard / rank.shares.whole : std::min(size, shard);
}

}  // namespace

double element_state_bytes(const Strategy& strategy) {
  // Moments have the type of what is updated: 16 bits where there is no fp32 copy.
  const double updated = strategy.master_weights ? 4 : strategy.precision.numbers;
  const double each = strategy.moments == MomentType::bf16 ? bytes_16 : updated;
  return strategy.optimizer.bytes.value_or(strategy.optimizer.moments * each);
}

double state_bytes(const RankPart& rank) {
  const Optimizer& optimizer = rank.input.strategy.optimizer;
  const double each = element_state_bytes(rank.input.strategy);
  const SchemeFacts facts = facts_of(rank.input.strategy);
  const WholeMatrices& how = facts.matrices;
  if (!optimizer.orthogonal && (!optimizer.factored || how.flat)) return each;
  double bytes = 0, elements = 0;
  for (const Matrix& matrix : rank.matrices) {
    const double ranks = sharers_of(rank, matrix), owners = facts.shares_states ? ranks : 1;
    const double momenta = how.partitioned ? 1 / ranks : share_of_matrices(rank, matrix);
    bytes += optimizer.orthogonal
                 ? how.momentum * momenta * matrix.elements()
                 : each * matrix.batch * matrix.count * (matrix.rows / owners + matrix.columns);
    elements += matrix.elements() / owners;
  }
  const double owned = owned_elements(rank);
  return (bytes + each * std::max(0.0, owned - elements)) / owned;
}

double passed_state_bytes(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  return s.optimizer.orthogonal ? element_state_bytes(s) : state_bytes(rank);
}

double gradient_bytes(const Strategy& strategy) {
  return strategy.gradients == GradientType::fp32 ? 4 : strategy.precision.numbers;
}

bool keeps_reference(const StepInput& input) {
  return input.job.has_reference() && input.strategy.lora.rank == 0;
}

bool keeps_whole_gradient(const Strategy& strategy) {
  return strategy.sharding == Sharding::zero1 &&
         (strategy.distributed.used || strategy.gradients == GradientType::fp32);
}

double owned_elements(const RankPart& rank) {
  return facts_of(rank.input.strategy).shares_states ? rank.shares.updated : rank.shares.trained;
}

double states_on_device(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  if (s.optimizer_place == Offload::none) return 1;
  if (s.optimizer_place == Offload::nvme) return 0;
  // The share goes tensor by tensor, or by sub-groups of one tensor.
  if (!facts_of(s).has_sub_groups || s.zero.sub_group <= 0) return 1 - s.offload.ratio;
  const double groups = std::max(1.0, std::ceil(rank.shares.updated / s.zero.sub_group));
  return std::floor((1 - s.offload.ratio) * groups) / groups;
}

double parameters_on_drives(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  if (s.parameter_place != Offload::nvme) return 0;
  return std::max(0.0, rank.shares.shard - s.offload.max_in_cpu) / rank.shares.shard;
}

double parameter_buffer_bytes(const Strategy& strategy) {
  return strategy.precision.numbers * static_cast<double>(strategy.offload.parameter_buffers) *
         strategy.offload.buffer_size;
}

double swap_buffer_bytes(const RankPart& rank) {
  return 4 * static_cast<double>(rank.input.strategy.offload.optimizer_buffers) *
         largest_sub_group(rank);
}

}  // namespace stepsim
