#include <fmt/format.h>

#include "scenarios/rules/rules.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// Ranks with different experts are an axis of their own, between those that share layers and those
// that hold different rows.
void check_repeats(const Table& moe, const StepSplit& sharing) {
  const Strategy& s = sharing.strategy;
  const auto reject = [&](std::string_view message) { moe.problem("same_rows", message); };
  const std::int64_t ranks =
      sharing.cluster.ranks() / s.pipeline_parallel.size / s.tensor_parallel.size;
  if (s.experts.parallel > 1 && ranks % s.experts.parallel != 0)
    moe.problem("expert_parallel",
                fmt::format("{} does not divide {} ranks", s.experts.parallel, ranks));
  if (!is_fsdp(s.sharding)) reject("is modelled for zero: fsdp and hsdp only");
  if (s.experts.dispatcher != Dispatcher::all_to_all) reject("goes with dispatcher: all_to_all");
  if (s.sequence_parallel.ranks() > 1) reject("is not modelled with sequence_parallel");
  if (sharing.job.save.every > 0) reject("is not modelled with job.save");
  if (s.tensor_parallel.size > 1 && (s.tensor_parallel.sequence || s.experts.tensor != 1))
    reject("needs tensor_parallel.sequence: false and expert_tensor_parallel: 1");
}

// Experts are dealt to the ranks of one copy of the states, whether or not these share tensors.
void check_ranks(const Table& moe, const StepSplit& sharing) {
  const Strategy& s = sharing.strategy;
  if (s.experts.same_rows) {
    check_repeats(moe, sharing);
    return;
  }
  const std::int64_t tensor = s.tensor_parallel.size, columns = expert_tensor_of(s);
  const std::int64_t ranks = wanted_shard(s, sharing.cluster) * tensor;
  if (columns != 1 && columns != tensor)
    moe.problem("expert_tensor_parallel",
                fmt::format("is 1 or the tensor_parallel size, {}", tensor));
  else if (ranks % (s.experts.parallel * columns) != 0)
    moe.problem("expert_parallel",
                fmt::format("{}{} does not divide {} ranks", s.experts.parallel,
                            columns > 1 ? fmt::format(" x {}", columns) : "", ranks));
  if (tensor == 1) return;
  if (!s.tensor_parallel.sequence)
    moe.problem("expert_parallel", "needs tensor_parallel.sequence: true");
  if (has_slots(s.experts.kernel))
    moe.problem("expert_parallel", "with tensor_parallel is modelled for grouped kernels only");
}

}  // namespace

// Notes what DeepSpeed itself rejects, before anything is simulated.
void check_experts(const Table& moe, const StepSplit& sharing, Known known) {
  const Strategy& s = sharing.strategy;
  if (s.experts.same_rows && s.experts.parallel == 1)
    moe.problem("same_rows", "needs an expert_parallel above 1");
  if (s.experts.tensor == 1 && s.experts.parallel == 1 && s.tensor_parallel.size > 1 &&
      s.tensor_parallel.sequence)
    moe.problem("expert_tensor_parallel", "1 without expert_parallel needs sequence: false");
  if (s.experts.overlaps && s.sharding > Sharding::zero1)
    moe.problem("overlap", "is modelled for zero: 0 and 1 only");
  if (s.experts.overlaps && s.checkpointing == Checkpointing::full)
    moe.problem("overlap", "does not go with checkpointing: full, as Megatron-Core has it");
  if (s.experts.overlaps && s.pipeline_parallel.size > 1 &&
      !pairs_turns(s.pipeline_parallel.schedule))
    moe.problem("overlap",
                "needs schedule: interleaved, dualpipe or dualpipe_v where layers are spread over "
                "stages");
  if (s.experts.kernel == MoeKernel::single_fp32 && known.cluster && !sharing.cluster.gpu.peak.fp32)
    moe.problem("kernel", fmt::format("single_fp32: the file of {} has no peak.fp32",
                                      sharing.cluster.gpu.name));
  if (s.experts.parallel == 1) return;
  const auto reject = [&](std::string_view message) { moe.problem("expert_parallel", message); };
  if (!exchanges_tokens(s.experts.kernel))
    reject("needs a kernel that exchanges tokens: grouped, megablocks, padded, tutel or deepspeed");
  if (s.sharding == Sharding::zero3)
    reject("DeepSpeed's own expert parallelism works with zero: 1 or 2 only");
  if (is_fsdp(s.sharding) && has_slots(s.experts.kernel))
    reject("kernels with slots work with zero: 1 or 2 only; fsdp takes grouped or padded");
  if (s.experts.dispatcher != Dispatcher::all_to_all && has_slots(s.experts.kernel))
    moe.problem("dispatcher", "deepep goes with grouped, megablocks and padded kernels");
  if (known.cluster) check_ranks(moe, sharing);
  if (!known.model) return;
  if (!sharing.model.experts)
    reject(sharing.model.name + " has no experts");
  else if (sharing.model.experts->count % s.experts.parallel != 0)
    reject(fmt::format("{} does not divide {} experts", s.experts.parallel,
                       sharing.model.experts->count));
}

}  // namespace stepsim
