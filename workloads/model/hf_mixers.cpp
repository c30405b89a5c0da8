// Families in which some layers, or most, do not attend.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

using Mixes = LayerKind::Mixes;
using Follows = LayerKind::Follows;

// The layers of `full_attn_idxs` attend; `layer_types` overrules it.
void read_lfm2_layers(const Table& root, Model& model) {
  if (root.has("layer_types")) {
    set_kinds(root, "layer_types", model,
              {{"conv", Mixes::mixer}, {"full_attention", Mixes::attention}});
    return;
  }
  std::vector<Mixes> mixes(static_cast<std::size_t>(model.layers),
                           root.has("full_attn_idxs") ? Mixes::mixer : Mixes::attention);
  for (const std::int64_t layer : integers(root, "full_attn_idxs")) {
    if (layer < 0 || layer >= model.layers) {
      root.problem("full_attn_idxs", "expected numbers of layers, from 0");
      return;
    }
    mixes[static_cast<std::size_t>(layer)] = Mixes::attention;
  }
  set_kinds(model, mixes);
}

void put_lfm2_mixer(const Table& root, Model& model) {
  if (root.has("tie_embedding")) model.tied_embeddings = root.flag_or("tie_embedding", true);
  const bool bias = root.flag_or("conv_bias", false);
  model.mixer = Mixer{.kind = MixerKind::convolution,
                      .width = model.hidden,
                      .taps = root.integer_or("conv_L_cache", 3, 1, hf_limits.taps),
                      .bias = bias,
                      .taps_bias = bias};
}

// Two thirds of what is said, made a multiple again.
void adjust_width(const Table& root, Model& model) {
  if (!root.flag_or("block_auto_adjust_ff_dim", true) || !root.sound()) return;
  const std::int64_t multiple = root.integer_or("block_multiple_of", 256, 1, hf_limits.width);
  const double factor = root.number_or("block_ffn_dim_multiplier", 1, 0.01, 100);
  const std::int64_t two_thirds = 2 * model.feed_forward.width / 3;
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
  model.feed_forward.width = (width + multiple - 1) / multiple * multiple;
}

// Returns whether a layer has it: each period-th has from `offset` on.
bool stands_at(std::int64_t layer, std::int64_t period, std::int64_t offset) {
  return layer % period == offset;
}

struct Period {
  std::int64_t length = 1, offset = 0;
};

Period read_period(const Table& root, std::string_view length, std::string_view offset,
                   const Period& usual) {
  const Period period{root.integer_or(length, usual.length, 1, hf_limits.layers),
                      root.integer_or(offset, usual.offset, 0, hf_limits.layers)};
  if (root.sound() && period.offset >= period.length)
    root.problem(offset, "expected less than the period of these layers");
  return period;
}

// Reads the mixers of Bamba, Granite 4, Falcon-H1 and others; "auto" divides what the layer is
// widened to.
Mixer read_mamba2(const Table& root, std::int64_t hidden) {
  Mixer mixer{.kind = MixerKind::mamba2};
  mixer.heads = root.integer_or("mamba_n_heads", 128, 1, hf_limits.heads);
  const std::int64_t expand = root.integer_or("mamba_expand", 2, 1, 64);
  const std::int64_t wide = root.integer_or("mamba_d_ssm", expand * hidden, 1, hf_limits.width);
  const bool given = root.has("mamba_d_head") && root.text_or("mamba_d_head", "") != "auto";
  mixer.width = given ? root.integer("mamba_d_head", 1, hf_limits.heads)
                      : wide / std::max<std::int64_t>(1, mixer.heads);
  mixer.groups = root.integer_or("mamba_n_groups", 1, 1, hf_limits.heads);
  mixer.state = root.integer_or("mamba_d_state", 256, 1, hf_limits.heads);
  mixer.taps = root.integer_or("mamba_d_conv", 4, 1, hf_limits.taps);
  mixer.chunk = root.integer_or("mamba_chunk_size", 256, 1, hf_limits.tokens);
  mixer.taps_bias = root.flag_or("mamba_conv_bias", true);
  mixer.bias = root.flag_or("mamba_proj_bias", false);
  if (root.sound() && mixer.channels() != wide)
    root.problem("mamba_n_heads",
                 root.has("mamba_d_ssm")
                     ? "heads times mamba_d_head must be mamba_d_ssm"
                     : "heads times mamba_d_head must be mamba_expand x hidden_size");
  return mixer;
}

// Reads experts of two matrices each; so is the one that every token meets.
Experts read_nemotron_experts(const Table& root) {
  Experts experts = read_experts(root, {"n_routed_experts", "moe_intermediate_size", "", ""});
  if (root.integer_or("n_shared_experts", 1, 0, hf_limits.shared) > 0)
    experts.shared_width = root.integer("moe_shared_expert_intermediate_size", 1, hf_limits.width);
  experts.gated = false;
  experts.selection_bias = true;
  if (root.has("moe_latent_size"))
    root.problem("moe_latent_size", "experts behind narrow vectors are not modelled");
  return experts;
}

// One letter a layer, or one word.
std::string read_nemotron_pattern(const Table& root) {
  constexpr std::string_view listed = "layers_block_type", letters = "hybrid_override_pattern";
  const bool words = root.has(listed);
  std::string pattern = words ? "" : root.text(letters);
  if (words)
    for (const std::string& word : root.texts(listed))
      pattern += word == "mamba" || word == "linear_attention"     ? 'M'
                 : word == "attention" || word == "full_attention" ? '*'
                 : word == "mlp"                                   ? '-'
                 : word == "moe"                                   ? 'E'
                                                                   : '?';
  if (root.sound() && pattern.find_first_not_of("M*-E") != std::string::npos)
    root.problem(words ? listed : letters,
                 "expected a layer each: M (mamba), * (attention), - (mlp) or E (moe)");
  return pattern.empty() ? "-" : pattern;
}

}  // namespace

void finish_lfm2(const Table& root, Model& model) {
  put_lfm2_mixer(root, model);
  adjust_width(root, model);
  read_lfm2_layers(root, model);
}

void finish_lfm2_moe(const Table& root, Model& model) {
  put_lfm2_mixer(root, model);
  read_lfm2_layers(root, model);
}

void finish_granite_hybrid(const Table& root, Model& model) {
  if (root.text_or("position_embedding_type", "") != "rope") model.positions = Positions::none;
  if (root.integer_or("num_local_experts", 8, 0, hf_limits.experts) > 0) {
    Experts experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
    experts.shared_width = model.feed_forward.width;
    experts.fused = experts.shared_fused = true;
    model.experts = experts;
  }
  if (root.has("layer_types"))
    set_kinds(root, "layer_types", model,
              {{"mamba", Mixes::mixer}, {"attention", Mixes::attention}});
  else
    set_kinds(model, std::vector<Mixes>(static_cast<std::size_t>(model.layers), Mixes::mixer));
  if (attention_layers(model) < model.layers) model.mixer = read_mamba2(root, model.hidden);
}

// Mamba-2 beside attention in each layer. Multipliers are left out, as above.
void finish_falcon_h1(const Table& root, Model& model) {
  set_kinds(model, std::vector<Mixes>(static_cast<std::size_t>(model.layers), Mixes::both));
  model.mixer = read_mamba2(root, model.hidden);
  model.mixer->normed = root.flag_or("mamba_rms_norm", false);
  if (root.flag_or("projectors_bias", false) != model.mixer->bias)
    root.problem("projectors_bias", "expected the same as mamba_proj_bias");
  if (root.has("attn_layer_indices"))
    root.problem("attn_layer_indices", "attention in some layers only is not modelled here");
}

void finish_jamba(const Table& root, Model& model) {
  const Period attends =
      read_period(root, "attn_layer_period", "attn_layer_offset", {.length = 8, .offset = 4});
  const Period sparse =
      read_period(root, "expert_layer_period", "expert_layer_offset", {.length = 2, .offset = 1});
  const bool experts = root.integer_or("num_experts", 16, 1, hf_limits.experts) > 1;
  if (experts) model.experts = read_experts(root, {"num_experts", "intermediate_size", "", ""});
  if (!root.sound()) return;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    model.kinds.push_back({.mixes = stands_at(layer, attends.length, attends.offset)
                                        ? Mixes::attention
                                        : Mixes::mixer,
                           .follows = experts && stands_at(layer, sparse.length, sparse.offset)
                                          ? Follows::experts
                                          : Follows::feed_forward});
  Mixer mixer{.kind = MixerKind::mamba};
  mixer.width = root.integer_or("mamba_expand", 2, 1, 64) * model.hidden;
  mixer.state = root.integer_or("mamba_d_state", 16, 1, hf_limits.heads);
  mixer.taps = root.integer_or("mamba_d_conv", 4, 1, hf_limits.taps);
  const bool given = root.has("mamba_dt_rank") && root.text_or("mamba_dt_rank", "") != "auto";
  mixer.step_width =
      given ? root.integer("mamba_dt_rank", 1, hf_limits.width) : (model.hidden + 15) / 16;
  mixer.taps_bias = root.flag_or("mamba_conv_bias", true);
  mixer.bias = root.flag_or("mamba_proj_bias", false);
  model.mixer = mixer;
}

// Each layer is one block: Mamba-2, attention, or feed-forward of two matrices.
void finish_nemotron_h(const Table& root, Model& model) {
  const std::string pattern = read_nemotron_pattern(root);
  const auto layers = static_cast<std::int64_t>(pattern.size());
  model = read_decoder(root, {.layers = layers, .heads = {.kv_heads = 8, .width = 128}});
  if (root.sound() && model.layers != layers)
    root.problem("num_hidden_layers",
                 fmt::format("{} layers, but their list has {}", model.layers, layers));
  model.layers = layers;
  model.positions = Positions::none;
  set_bias(model, root.flag_or("attention_bias", false));
  model.feed_forward.gated = false;
  model.feed_forward.bias = root.flag_or("mlp_bias", false);
  for (const char letter : pattern)
    model.kinds.push_back({.mixes = letter == 'M'   ? Mixes::mixer
                                    : letter == '*' ? Mixes::attention
                                                    : Mixes::nothing,
                           .follows = letter == '-'   ? Follows::feed_forward
                                      : letter == 'E' ? Follows::experts
                                                      : Follows::nothing});
  if (pattern.find('E') != std::string::npos) model.experts = read_nemotron_experts(root);
  Mixer mixer{.kind = MixerKind::mamba2};
  mixer.heads = root.integer_or("mamba_num_heads", 128, 1, hf_limits.heads);
  mixer.width = root.integer_or("mamba_head_dim", 64, 1, hf_limits.heads);
  mixer.groups = root.integer_or("n_groups", 8, 1, hf_limits.heads);
  mixer.state = root.integer_or("ssm_state_size", 128, 1, hf_limits.heads);
  mixer.taps = root.integer_or("conv_kernel", 4, 1, hf_limits.taps);
  mixer.chunk = root.integer_or("chunk_size", 128, 1, hf_limits.tokens);
  mixer.taps_bias = root.flag_or("use_conv_bias", true);
  mixer.bias = root.flag_or("use_bias", false);
  mixer.wide_state = keeps_wide_state(root, "mamba_ssm_cache_dtype", true);
  model.mixer = mixer;
}

}  // namespace stepsim
