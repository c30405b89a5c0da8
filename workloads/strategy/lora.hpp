// These keys say which matrices adapters stand beside, and how these are stored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/member_words.hpp"
#include "workloads/strategy/adapter_method.hpp"
#include "workloads/strategy/weight_format.hpp"

namespace stepsim {

// Adapters stand beside these frozen matrices: only adapters have gradients and an optimizer.
enum class LoraTargets : std::uint8_t {
  attention,
  linear,  // and dense feed-forward
  all,     // and experts
};
inline constexpr std::array<std::string_view, 3> lora_targets_names{"attention", "linear", "all"};
enum class LoraFrozen : std::uint8_t { bf16, fp32 };
inline constexpr std::array<std::string_view, 2> lora_frozen_names{"bf16", "fp32"};
// This says in which type adapters are kept and multiplied: in 16 bits; in 32, cast for products in
// 16 by autocast; in 32, multiplied by TF32 or in 32 bits.
enum class AdapterType : std::uint8_t { bf16, autocast, tf32, fp32 };
inline constexpr auto adapter_type_names = words_through<AdapterType::fp32>();
// Adapters are modules of their own, or run inside one function with their frozen matrices.
enum class AdapterKernels : std::uint8_t { modules, fused };
inline constexpr std::array<std::string_view, 2> adapter_kernels_names{"modules", "fused"};
struct Lora {
  std::int64_t rank = 0;  // 0: the whole model is trained
  LoraTargets targets = LoraTargets::linear;
  WeightFormat quantised{};              // how the frozen matrices are stored
  LoraFrozen frozen = LoraFrozen::bf16;  // what nothing quantises
  AdapterMethod method{};
  std::optional<AdapterType> type{};  // nothing: as the stack has them
  double dropout = 0;                 // of the input of each adapter
  AdapterKernels kernels = AdapterKernels::modules;
  bool saves_inputs = false;  // the function of a packed matrix does, whatever its format says
  bool embedding = false, head = false;  // these are trained whole beside adapters
  // If there are any, those targets alone have adapters whose names end with one of these; empty:
  // all.
  std::vector<std::string> modules{};

  // "self_attn.q_proj" has an adapter under "q_proj", and under "self_attn.q_proj".
  bool chooses(std::string_view matrix) const;

  friend bool operator==(const Lora&, const Lora&) = default;
};

}  // namespace stepsim
