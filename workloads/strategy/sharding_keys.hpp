// These keys say how parameters, gradients and states are shared out, in the words of those who do
// it: DeepSpeed, Megatron, PyTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepsim {

// These are DeepSpeed's keys with DeepSpeed's defaults; sizes are in elements, as there.
struct ZeroKeys {
  double reduce_bucket = 5e8, prefetch_bucket = 5e7, persistence_threshold = 1e5;
  double max_live = 1e9, max_reuse = 1e9, sub_group = 1e9;
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
  std::int64_t shard = 0, replicate = 0;

  friend bool operator==(const FsdpKeys&, const FsdpKeys&) = default;
};

// Offload says where a rank keeps what it does not need at once.
enum class Offload : std::uint8_t { none, cpu, nvme };
inline constexpr std::array<std::string_view, 3> offload_names{"none", "cpu", "nvme"};

// This says which AdamW the host runs.
enum class HostAdam : std::uint8_t {
  one_pass,   // DeepSpeed's CPU-Adam, PyTorch's with fused=True, as Megatron has it
  operators,  // PyTorch's own, an operator at a time
  grace,      // GraceAdam: one pass, written for that processor
};
inline constexpr std::array<std::string_view, 3> host_adam_names{"one_pass", "operators", "grace"};

// These are DeepSpeed's keys with DeepSpeed's defaults; sizes are in elements.
struct OffloadKeys {
  HostAdam adam = HostAdam::one_pass;
  std::int64_t threads = 0;  // of a rank's update on the host; 0: its share of the cores
  bool pins = false;         // stages 1 and 2: what gradients are copied to is pinned
  double ratio = 1;  // of the optimizer, at stage 3 in sub-groups; the others stay on the device
  bool pipeline_read = false;  // nvme: the next sub-group is read during the update of this one
  bool pipeline_write = false;
  std::int64_t optimizer_buffers = 4;  // nvme: of the largest sub-group each
  std::int64_t parameter_buffers = 5;  // nvme: of buffer_size each
  double buffer_size = 1e8;
  double max_in_cpu = 1e9;  // nvme: parameters of a rank that stay in host memory all the same

  friend bool operator==(const OffloadKeys&, const OffloadKeys&) = default;
};

}  // namespace stepsim
