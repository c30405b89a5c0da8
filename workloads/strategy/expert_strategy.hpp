// This says how experts run and how tokens come to them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/member_words.hpp"

namespace stepsim {

enum class MoeKernel : std::uint8_t {
  loop,              // one expert after the other, each with routing syncs
  grouped,           // all experts in one grouped product
  megablocks,        // the same over blocks of tokens
  padded,            // all experts in one batched product, as long as the busiest needs
  tutel,             // capacity slots per expert, batched products, exchange of tokens
  deepspeed,         // capacity slots per expert, a loop over equal chunks, exchange of tokens
  deepspeed_einsum,  // the same with tokens moved by products with masks
  all_experts,       // every token through every expert
  single_fp32,       // a product of each expert in 32 bits, out of stacked weights
};
inline constexpr auto moe_kernel_names = words_through<MoeKernel::single_fp32>();
// Tokens go into slots of fixed capacity, and DeepSpeed keeps the experts' gradients apart.
constexpr bool has_slots(MoeKernel kernel) {
  return kernel == MoeKernel::tutel || kernel == MoeKernel::deepspeed ||
         kernel == MoeKernel::deepspeed_einsum;
}
// Ranks may hold different experts and send each other tokens.
constexpr bool exchanges_tokens(MoeKernel kernel) {
  return kernel != MoeKernel::loop && kernel != MoeKernel::all_experts &&
         kernel != MoeKernel::single_fp32;
}

// A dispatcher says how tokens travel between ranks that hold different experts.
enum class Dispatcher : std::uint8_t {
  all_to_all,  // the library's: a copy of a token's row for each of its experts
  deepep,      // kernels that send one copy to each node, and there one to each rank
  hybridep,    // the same into buffers of fixed size: the host need not know how much comes
};
inline constexpr auto dispatcher_names = words_through<Dispatcher::hybridep>();
constexpr bool sends_once(Dispatcher dispatcher) {
  return dispatcher != Dispatcher::all_to_all;
}

enum class ExpertLayout : std::uint8_t {
  model,     // as the model's code stores them
  separate,  // three matrices for each expert
  fused,     // one tensor for gate and up of all experts, one for down
};
inline constexpr std::array<std::string_view, 3> expert_layout_names{"model", "separate", "fused"};

struct ExpertStrategy {
  MoeKernel kernel = MoeKernel::loop;
  ExpertLayout layout = ExpertLayout::model;
  Dispatcher dispatcher = Dispatcher::all_to_all;
  std::int64_t parallel = 1;   // ranks that share one set of experts
  std::int64_t tensor = 0;     // ranks that share each expert; 0: as many as share a layer
  bool same_rows = false;      // ranks with different experts have the same rows
  double capacity_factor = 1;  // expert slots per token that is routed; 0: none is dropped
  double drops_above = 0;      // times the mean: what one expert takes at most; 0: all
  bool neighbours = false;     // a token's experts stand side by side
  bool graphs = false;         // routing and sending tokens are replayed as CUDA graphs
  // Tokens of a micro-batch travel while another one computes: forward passes of one and backward
  // passes of the one before take turns, layer by layer.
  bool overlaps = false;
  bool delays_weights = false;  // then gradients of experts' weights wait until tokens travel
  double skew = 0;              // of the tokens that experts get: standard deviation over mean
  double peak_skew = 0;         // the most that there has been, for memory; 0: as `skew`

  double most_skew() const { return peak_skew > skew ? peak_skew : skew; }

  friend bool operator==(const ExpertStrategy&, const ExpertStrategy&) = default;
};

}  // namespace stepsim
