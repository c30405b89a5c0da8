// These keys say which matrices adapters stand beside, and how these are stored.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Adapters stand beside these frozen matrices: only adapters have gradients and an optimizer.
enum class LoraTargets : std::uint8_t {
  attention,
  linear,  // and dense feed-forward
  all,     // and experts
};
inline constexpr std::array<std::string_view, 3> lora_targets_names{"attention", "linear", "all"};
enum class Quantised : std::uint8_t { none, nf4, nf4_all };
inline constexpr std::array<std::string_view, 3> quantised_names{"none", "nf4", "nf4_all"};
enum class LoraFrozen : std::uint8_t { bf16, fp32 };
inline constexpr std::array<std::string_view, 2> lora_frozen_names{"bf16", "fp32"};
struct Lora {
  std::int64_t rank = 0;  // 0: the whole model is trained
  LoraTargets targets = LoraTargets::linear;
  Quantised quantised = Quantised::none;  // how the frozen matrices are stored
  LoraFrozen frozen = LoraFrozen::bf16;   // what nothing quantises
  // If there are any, those targets alone have adapters whose names end with one of these; empty:
  // all.
  std::vector<std::string> modules{};

  // "self_attn.q_proj" has an adapter under "q_proj", and under "self_attn.q_proj".
  bool chooses(std::string_view matrix) const;

  friend bool operator==(const Lora&, const Lora&) = default;
};

}  // namespace stepsim
