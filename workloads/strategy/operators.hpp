// These are the costs, as data, of operators that stream through device memory:
// workloads/operators.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/gpu.hpp"

namespace stepsim {

enum class Operator : std::uint8_t {
  norm,
  norm_fused,
  norm_residual,
  residual,
  rope,
  rope_fused,
  join_heads,
  repeat_heads,
  softmax,
  softmax_fused,
  softmax_fp32,
  bias_gradient,
  unpack,
  lora_add,
  lora_add_compiled,
  lora_add_around,
  lora_cast,
  lora_backward,
  activation,
  activation_fused,
  activation_ungated,
  activation_backward,
  activation_backward_fused,
  routing,
  sort,
  move_rows,
  add_rows,
  add_rows_fused,
  order_once,
  weigh,
  weigh_fused,
  weigh_backward,
  weigh_backward_fused,
  pad,
  pad_backward,
  loop_dispatch,
  slice_dispatch,
  loop_dispatch_backward,
  mask_find,
  mask_dispatch,
  mask_dispatch_backward,
  mask_backward,
  expert_bias,
  expert_bias_backward,
  index_backward,
  slice_backward,
  tutel_masks,
  tutel_encode,
  tutel_decode,
  tutel_activation,
  tutel_activation_compiled,
  deepspeed_gating,
  deepspeed_dispatch,
  deepspeed_masks,
  deepspeed_join,
  deepspeed_combine,
  replicate,
  sum_experts,
  embedding,
  embedding_backward,
  log_softmax,
  cross_entropy,
  cross_entropy_backward,
  cross_entropy_16,
  cross_entropy_16_backward,
  cross_entropy_32,
  cross_entropy_32_backward,
  cross_entropy_kernel,
  cross_entropy_kernel_backward,
  cross_entropy_kernel_32,
  cross_entropy_kernel_32_backward,
  cross_entropy_divided,
  cross_entropy_fused,
  cross_entropy_words,
  cross_entropy_words_backward,
  cross_entropy_casts,
  cross_entropy_sums,
  label_loss,
  logits_cast,
  pooling,
  dropout,
  distances,
  attention_gate,
  convolution,
  convolution_backward,
  convolution_gates,
  convolution_gates_backward,
  gated_norm,
  gated_norm_backward,
  scan,
  scan_backward,
  scan_copies,
  state_space,
  state_space_backward,
  state_space_states,
  state_space_states_backward,
  delta,
  delta_backward,
  delta_states,
  delta_states_backward,
  delta_join,
  delta_gates,
  delta_norms,
  softcap,
  none,  // a copy whose bytes are what they are, or a product
};
inline constexpr auto operator_names = words_through<Operator::softcap>();

struct Operators {
  struct Count {
    double kernels = 0;
    double bytes = 0;                 // for each number
    std::optional<double> operators;  // that the host dispatches; else one for each kernel

    friend bool operator==(const Count&, const Count&) = default;
  };
  std::array<Count, operator_names.size()> counts;
  struct Backward {  // work over that of the forward pass
    double attention = 0, streaming = 0;

    friend bool operator==(const Backward&, const Backward&) = default;
  } backward;
  // This says how libraries multiply matrices. They choose among tiles, and cut the depth in two,
  // four and so on where there are too few of them.
  struct Product {
    double operators = 0;  // that the host dispatches for a kernel
    std::vector<Tile> tiles;
    double most_cuts = 0;
    double shortest_cut = 0;  // depth

    friend bool operator==(const Product&, const Product&) = default;
  } product;
  struct ZeroUpdate {  // bytes for each number of a rank's part
    double norm = 0;
    double scale_and_copy = 0;  // around the optimizer's kernels
    double host = 0;            // the same where the host updates

    friend bool operator==(const ZeroUpdate&, const ZeroUpdate&) = default;
  } zero_update;
  struct Allocator {      // bytes a second of memory that is given back and asked for anew
    double map = 0;       // piece by piece, with expandable segments
    double allocate = 0;  // in whole blocks

    friend bool operator==(const Allocator&, const Allocator&) = default;
  } allocator;

  const Count& operator[](Operator which) const { return counts[static_cast<std::size_t>(which)]; }

  friend bool operator==(const Operators&, const Operators&) = default;
};

Operators read_operators(const Table& table);

}  // namespace stepsim
