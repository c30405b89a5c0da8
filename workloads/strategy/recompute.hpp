// This says which modules of a layer run again before its backward pass, by Megatron's names.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/member_words.hpp"

namespace stepsim {

enum class LayerPart : std::uint8_t {
  core_attn,       // attention's own kernels, from queries, keys and values
  layernorm,       // norms in front of attention and feed-forward
  moe_act,         // the activation of experts
  mla_up_proj,     // queries, keys and values out of their narrow ones, and their rotation
  mlp,             // the feed-forward block of a layer without experts
  moe,             // that of a layer with experts, tokens sent once more
  shared_experts,  // the expert that every token meets
  none,
};
inline constexpr auto module_names = words_through<LayerPart::shared_experts>();

struct RecomputedModules {
  std::array<bool, module_names.size()> chosen{true};

  bool has(LayerPart part) const {
    return part != LayerPart::none && chosen[static_cast<std::size_t>(part)];
  }
  // A block with all that is in it.
  bool whole(LayerPart part) const {
    return (part >= LayerPart::mlp && has(part)) ||
           (part == LayerPart::shared_experts && has(LayerPart::moe));
  }
  // Returns whether products for weights run again.
  bool products() const {
    return has(LayerPart::mla_up_proj) || has(LayerPart::mlp) || has(LayerPart::moe) ||
           has(LayerPart::shared_experts);
  }

  friend bool operator==(const RecomputedModules&, const RecomputedModules&) = default;
};

}  // namespace stepsim
