// A strategy says how a job is spread over ranks and what each rank keeps: the choices of a
// practitioner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/member_words.hpp"
#include "workloads/strategy/expert_strategy.hpp"
#include "workloads/strategy/lora.hpp"
#include "workloads/strategy/optimizer.hpp"
#include "workloads/strategy/pipeline_strategy.hpp"
#include "workloads/strategy/precision.hpp"
#include "workloads/strategy/recompute.hpp"
#include "workloads/strategy/sharding_keys.hpp"

namespace stepsim {

// GPUs of a job: files may say no more.
inline constexpr std::int64_t most_ranks = 1 << 20;

enum class Sharding : std::uint8_t { zero0, zero1, zero2, zero3, fsdp, hsdp };
inline constexpr std::array<std::string_view, 6> sharding_names{"0", "1", "2", "3", "fsdp", "hsdp"};
constexpr std::string_view to_text(Sharding sharding) {
  return sharding_names[static_cast<std::size_t>(sharding)];
}
// Returns whether the sharding is PyTorch's own, as opposed to DeepSpeed's.
constexpr bool is_fsdp(Sharding sharding) {
  return sharding == Sharding::fsdp || sharding == Sharding::hsdp;
}

// The backward pass computes this again instead of having kept it.
enum class Checkpointing : std::uint8_t {
  none,
  selective,  // single modules, as Megatron does: the core of attention unless others are named
  operators,  // all but attention and every second matrix product, as torchtitan does
  full,       // the whole layer, from its input
};
inline constexpr auto checkpointing_names = words_through<Checkpointing::full>();

enum class CrossEntropy : std::uint8_t {
  logits,       // PyTorch's, over a copy of all logits in 32 bits
  logits_16,    // PyTorch's, over the logits in 16 bits
  logits_32,    // PyTorch's, over the logits of a head that multiplies in 32 bits
  kernel,       // one kernel over 16-bit logits, and one for their gradient
  kernel_32,    // the same over a copy of the logits in 32 bits
  in_place,     // as `kernel`, the gradient takes the place of the logits
  fused,        // chunk by chunk with the head
  words_32,     // 2048 words of the vocabulary after another, multiplied in 32 bits, in both passes
  chunks,       // an eighth of the tokens after the other, over logits in 16 bits
  head_chunks,  // the same, each behind its part of the head
};
inline constexpr auto cross_entropy_names = words_through<CrossEntropy::head_chunks>();

enum class AttentionKernel : std::uint8_t {
  flash,           // knows where documents end
  flash3,          // the same, written for this generation of GPUs where there is such a kernel
  sdpa,            // PyTorch's choice without a mask: a flash kernel over whole rows
  sdpa_efficient,  // PyTorch's choice with a mask: all pairs of a row, none of them in memory
  sdpa_math,       // PyTorch's fallback: all pairs in memory, in 32 bits
  flex,            // a compiled kernel that knows documents
  eager,           // all pairs in memory, operator by operator
};
inline constexpr auto attention_names = words_through<AttentionKernel::eager>();

// This is the type in which gradients wait for the optimizer; DeepSpeed's default is the model's.
enum class GradientType : std::uint8_t { bf16, fp32 };
inline constexpr std::array<std::string_view, 2> gradient_type_names{"bf16", "fp32"};

// This says how a model that will be sharded comes to the devices: shard by shard, or whole on each
// of them first, as happens when the framework's hook is bypassed.
enum class Loading : std::uint8_t { sharded, replica };
inline constexpr std::array<std::string_view, 2> loading_names{"sharded", "replica"};

// Ranks that share every layer, as Megatron does it.
struct TensorParallel {
  std::int64_t size = 1;
  bool sequence = true;         // they also share the tokens between blocks
  bool gathers_logits = false;  // each computes the loss over the whole vocabulary
  bool gathers_each = false;    // each product of a block collects the block's input for itself
  bool divides_embedding = true;
  bool divides_head = true;  // else each has the whole one, and computes the whole loss
  bool in_pieces = false;    // a compiler lets pieces of tokens travel beside products of others

  friend bool operator==(const TensorParallel&, const TensorParallel&) = default;
};

// Ranks may share every sequence, by swapping its pieces for heads, and round a ring. This says how
// a ring cuts it: each rank has a piece from its beginning and one from its end, so that all see as
// many keys, or one piece, of which the last sees them all.
enum class RingSlices : std::uint8_t { balanced, contiguous };
inline constexpr std::array<std::string_view, 2> ring_slices_names{"balanced", "contiguous"};
struct SequenceParallel {
  std::int64_t ulysses = 1, ring = 1;
  RingSlices slices = RingSlices::balanced;

  std::int64_t ranks() const { return ulysses * ring; }

  friend bool operator==(const SequenceParallel&, const SequenceParallel&) = default;
};

// These parts of a model that sees are trained; the others are frozen, as most trainers leave them.
struct VisionKeys {
  bool tower = false, projector = false;

  friend bool operator==(const VisionKeys&, const VisionKeys&) = default;
};

struct Strategy {
  Sharding sharding = Sharding::zero3;
  Checkpointing checkpointing = Checkpointing::full;
  RecomputedModules recomputed;  // under selective
  // This says how PyTorch (2.1 and later) computes layers again: in a pass of its own, before which
  // no graph is kept, or by hooks on all that operators save, and only up to the last of these, so
  // that the last product of a layer does not run again. Nothing: as the stack does it.
  std::optional<bool> reentrant;
  bool compiled = false;  // torch.compile: what is between matrix products is fused
  std::optional<CrossEntropy> cross_entropy;  // nothing: as the stack does it
  bool shifts_logits = false;                 // all but the last of a row are copied for the loss
  Precision precision;                        // of matrix products, or of all there is
  Optimizer optimizer;
  UpdateKernels update_kernels = UpdateKernels::fused;
  MatrixUpdates matrix_updates = MatrixUpdates::dealt;
  ExpertStrategy experts;
  std::optional<AttentionKernel> attention;  // nothing: what the stack uses
  Offload optimizer_place = Offload::none, parameter_place = Offload::none;
  Offload activation_place = Offload::none;  // of what waits for the backward pass
  OffloadKeys offload;
  bool master_weights = true;       // fp32 copy beside 16-bit parameters
  bool update_in_backward = false;  // of each tensor, as soon as its gradient is there
  GradientType gradients = GradientType::bf16;
  MomentType moments = MomentType::fp32;
  Loading load = Loading::sharded;
  bool expandable_segments = false;  // PyTorch's allocator maps memory piece by piece
  double checkpoint_every = 1;       // of so many layers, in the mean, one is computed again
  ZeroKeys zero;
  DistributedOptimizer distributed;
  FsdpKeys fsdp;
  TensorParallel tensor_parallel;
  SequenceParallel sequence_parallel;
  PipelineParallel pipeline_parallel;
  Lora lora;
  VisionKeys vision;

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// Returns the ranks that share each expert.
constexpr std::int64_t expert_tensor_of(const Strategy& strategy) {
  return strategy.experts.tensor > 0 ? strategy.experts.tensor : strategy.tensor_parallel.size;
}
// Tokens of a rank are its own between blocks, and go to the ranks that hold their experts.
constexpr bool sends_tokens(const Strategy& strategy) {
  return strategy.experts.parallel > 1;
}
// Returns the ranks that go through the same rows, but hold different experts.
constexpr std::int64_t repeats_of(const Strategy& strategy) {
  return strategy.experts.same_rows ? strategy.experts.parallel : 1;
}
// Ranks that share a layer have each expert whole and the same tokens: each runs all of it.
constexpr bool repeats_experts(const Strategy& strategy) {
  return strategy.tensor_parallel.size > 1 && !strategy.tensor_parallel.sequence &&
         strategy.experts.tensor == 1;
}
// The first version of FSDP has one flat tensor of what a layer trains and what adapters leave
// frozen: all of it gets a gradient, unless adapters are units of their own.
inline bool flattens_frozen(const Strategy& s) {
  return is_fsdp(s.sharding) && s.fsdp.version == 1 && !s.fsdp.adapter_units && s.lora.rank > 0 &&
         s.lora.kernels == AdapterKernels::modules && !s.lora.quantised.packs();
}
// Where it is computed again in a pass of its own, the hooks of that version on a layer whose flat
// tensor has no gradient hold the layer's input, and the gradient of that, until the backward pass
// is over (torch/distributed/fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook).
inline bool holds_frozen_inputs(const Strategy& s, bool reentrant) {
  return is_fsdp(s.sharding) && s.fsdp.version == 1 && s.lora.rank > 0 && !flattens_frozen(s) &&
         s.checkpointing == Checkpointing::full && reentrant;
}
constexpr std::int64_t ranks_of_embedding(const TensorParallel& tensor) {
  return tensor.divides_embedding ? tensor.size : 1;
}
constexpr std::int64_t ranks_of_head(const TensorParallel& tensor) {
  return tensor.divides_head ? tensor.size : 1;
}

}  // namespace stepsim
