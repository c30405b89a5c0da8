// These keys say how parameters, gradients and states are shared out, in the words of those who do
// it: DeepSpeed, Megatron, PyTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepsim {

// These are DeepSpeed's keys with DeepSpeed's defaults; sizes are in elements, as there.
struct ZeroKeys {
  double reduce_bucket = 5e8;
  double prefetch_bucket = 5e7;
  double persistence_threshold = 1e5;
  double max_live = 1e9;
  double max_reuse = 1e9;
  double sub_group = 1e9;
  bool leaf_modules = false;
  std::int64_t hpz = 1;              // ranks of the secondary partition that backward gathers from
  bool quantized_weights = false;    // gathers move 8 bits
  bool quantized_gradients = false;  // reductions between nodes are exchanges of 4 bits
  // These say what a release does with all tensors of a model, again and again.
  bool clears_in_sub_groups = true;  // stage 3 clears all gradients for each sub-group
  bool counts_in_hooks = false;      // each gradient hook counts the tensors that have one
  // Stages 1 and 2 with the optimizer on the host: a sum of micro-batches that is none of the first
  // one and not the last stays where it was made, on the device, and is lost.
  bool loses_sums = true;
  // Stages 1 and 2: neighbours among the tensors belong to different ranks. Otherwise a bucket
  // belongs to one or two.
  bool round_robin = false;
  // Stage 3 stops the host at each fetch until the device is done, and looks neither ahead nor
  // back.
  bool stops_at_fetches = false;
  bool overlap_comm = true;  // DeepSpeed: true at stage 3, false below
  // Stages 1 and 2, with overlap_comm all the same: no kernel of the backward pass before a
  // bucket's reduction is done.
  bool waits_for_reductions = false;

  friend bool operator==(const ZeroKeys&, const ZeroKeys&) = default;
};

// In Megatron's distributed optimizer products add to one buffer of all gradients, whose buckets
// are reduce-scattered at the last micro-batch.
struct DistributedOptimizer {
  bool used = false;
  bool overlap_reduce = true;  // beside the backward pass
  bool overlap_gather = true;  // of the updated parameters, beside the next forward pass
  std::int64_t shard = 0;      // neighbours that share one copy of the states; 0: all ranks

  friend bool operator==(const DistributedOptimizer&, const DistributedOptimizer&) = default;
};

enum class FsdpPrefetch : std::uint8_t {
  pre,   // the next group is asked for before the backward pass of this one
  post,  // after it
  none,
};
inline constexpr std::array<std::string_view, 3> fsdp_prefetch_names{"pre", "post", "none"};

enum class FsdpDtype : std::uint8_t { fp32, bf16 };
inline constexpr std::array<std::string_view, 2> fsdp_dtype_names{"fp32", "bf16"};

// These are PyTorch's keys. Version 1 shards one flat parameter per group, version 2 each
// parameter.
struct FsdpKeys {
  std::int64_t version = 2;
  FsdpDtype reduce = FsdpDtype::fp32;  // in which gradients travel
  FsdpDtype gather = FsdpDtype::bf16;  // and parameters; in fp32 they are cast behind
  bool reshard_after_forward = true;   // false: parameters stay until their backward pass
  bool sync_each_batch = true;         // false: no_sync, gradients are reduced at the boundary only
  bool limit_all_gathers = true;       // version 1: the host runs at most two groups ahead
  bool forward_prefetch = false;       // the next group is asked for by name, not by running ahead
  FsdpPrefetch backward_prefetch = FsdpPrefetch::pre;
  bool narrow_gather = false;  // what is multiplied in 8 bits is gathered in 8 bits
  bool root_group = false;     // embedding and head together, gathered from first to last use
  bool reshard_root = false;   // given up between the two passes
  bool root_experts = false;   // those of all layers together, like the root's
  bool adapter_units = false;  // each matrix of an adapter is gathered by itself
  // Under hsdp `shard` ranks share one copy, and there are `replicate` copies; 0 stands for a copy
  // per node, or for what is left.
  std::int64_t shard = 0;
  std::int64_t replicate = 0;

  friend bool operator==(const FsdpKeys&, const FsdpKeys&) = default;
};

}  // namespace stepsim
