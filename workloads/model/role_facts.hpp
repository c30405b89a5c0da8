// This table says what each role is to those that divide, cast and multiply its unit: a new role is
// a row of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "workloads/model/parts.hpp"

namespace stepsim {

// Blocks have their projections, but not the norm before them.
enum class Block : std::uint8_t { other, attention, mixer, shared_expert };

// This is what tensor parallelism makes of a unit of a layer. Ranks share the heads of a mixer,
// each with its state, as Megatron-Core's mixers have it; short convolutions and Mamba are refused
// before.
enum class RolePlace : std::uint8_t {
  unknown,  // the unit is in no layer that ranks share
  between,  // blocks: on the rank's own tokens, where these are divided
  reads,    // a block's input, whole on every rank
  inside,   // on a part of what is divided
  ends,     // a block, with a part of a sum
};

// Of units that read the same, the last one keeps it for the backward pass. The others are cast
// together with the next.
enum class RoleInput : std::uint8_t { own, shared, kept };

struct RoleFacts {
  Role role;
  Block block = Block::other;
  RolePlace place = RolePlace::unknown;
  RoleInput input = RoleInput::own;
  bool narrows = false;     // a precision may multiply it in fewer bits, as it says for the block
  Role first = Role::none;  // of the matrices that engines multiply at once; none: it is alone
};

inline constexpr auto role_facts = [] {
  using enum Role;
  using enum Block;
  using enum RolePlace;
  using enum RoleInput;
  constexpr bool narrows = true;
  return std::array{
      RoleFacts{none},
      RoleFacts{container},
      RoleFacts{embedding},
      RoleFacts{positions},
      RoleFacts{embedding_norm},
      RoleFacts{attention_norm, other, between},
      RoleFacts{query, attention, reads, shared, narrows},
      RoleFacts{key, attention, reads, shared, narrows, query},
      RoleFacts{value, attention, reads, kept, narrows, query},
      RoleFacts{query_key_value, attention, reads, kept, narrows, query},
      RoleFacts{narrow_query, attention, reads, shared, narrows},
      RoleFacts{latent, attention, reads, kept, narrows, narrow_query},
      RoleFacts{narrow_query_norm, attention, inside},
      RoleFacts{latent_norm, attention, inside},
      RoleFacts{wide_query, attention, inside, own, narrows},
      RoleFacts{wide_latent, attention, inside, own, narrows},
      RoleFacts{index_query, attention, inside},  // whole on every rank, as the next ones are
      RoleFacts{index_key, attention, inside},
      RoleFacts{index_key_norm, attention, inside},
      RoleFacts{index_weights, attention, inside},
      RoleFacts{index_scores, attention, inside},
      RoleFacts{query_norm, attention, inside},
      RoleFacts{key_norm, attention, inside},
      RoleFacts{attend, attention, inside},
      RoleFacts{attention_gate, attention, inside},
      RoleFacts{attention_output, attention, ends, own, narrows},
      RoleFacts{attention_result_norm, other, between},
      RoleFacts{attention_residual, other, between},
      RoleFacts{mixer_in, mixer, reads, kept},
      RoleFacts{mixer_gates, mixer, reads, kept},
      RoleFacts{mixer_weigh, mixer, reads, own, false, mixer_in},
      RoleFacts{mixer_put, mixer, reads, own, false, mixer_gates},
      RoleFacts{mixer_forget, mixer, reads, kept, false, mixer_gates},
      RoleFacts{mixer_constant, mixer},
      RoleFacts{convolution, mixer, inside},
      RoleFacts{mixer_narrow, mixer},
      RoleFacts{step_norm, mixer},
      RoleFacts{put_norm, mixer},
      RoleFacts{read_norm, mixer},
      RoleFacts{mixer_steps, mixer},
      RoleFacts{mix, mixer, inside},
      RoleFacts{mixer_norm, mixer, inside},
      RoleFacts{mixer_out, mixer, ends},
      RoleFacts{feed_forward_norm, other, between},
      RoleFacts{gate, other, reads, shared, narrows},
      RoleFacts{up, other, reads, kept, narrows, gate},
      RoleFacts{gate_up, other, reads, kept, narrows, gate},
      RoleFacts{activation, other, inside},
      RoleFacts{down, other, ends, own, narrows},
      RoleFacts{expert_gate},
      RoleFacts{expert_up, other, unknown, own, false, expert_gate},
      RoleFacts{expert_gate_up, other, unknown, own, false, expert_gate},
      RoleFacts{expert_down},
      RoleFacts{experts, other, inside},
      RoleFacts{move_tokens, other, inside},
      RoleFacts{router, other, reads, kept},
      RoleFacts{shared_gate, shared_expert, reads, shared, narrows},
      RoleFacts{shared_up, shared_expert, reads, kept, narrows, shared_gate},
      RoleFacts{shared_activation, shared_expert, inside},
      RoleFacts{shared_down, shared_expert, ends, own, narrows},
      RoleFacts{shared_weight, shared_expert, reads},
      RoleFacts{feed_forward_result_norm, other, between},
      RoleFacts{feed_forward_residual, other, between},
      RoleFacts{final_norm},
      RoleFacts{patches},
      RoleFacts{places},
      RoleFacts{tower_norm},
      RoleFacts{projector},
      RoleFacts{projector_norm},
      RoleFacts{head_dense},
      RoleFacts{head_norm},
      RoleFacts{head},
      RoleFacts{score},
      RoleFacts{loss},
  };
}();
constexpr const RoleFacts& facts_of(Role role) {
  return role_facts[static_cast<std::size_t>(role)];
}
static_assert(role_facts.size() == static_cast<std::size_t>(Role::loss) + 1 &&
                  std::ranges::is_sorted(role_facts, std::ranges::less_equal(), &RoleFacts::role),
              "the table needs one row for each role, in their order");

}  // namespace stepsim
