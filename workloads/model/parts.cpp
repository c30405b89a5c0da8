#include "workloads/model/parts.hpp"

#include <algorithm>
#include <cassert>

#include "workloads/model/role_facts.hpp"

namespace stepsim {
namespace {

using Parts = std::vector<Part>;

void add_container(Parts& list, std::string name, Role role = Role::container) {
  Part part;
  part.name = std::move(name);
  part.role = role;
  list.push_back(std::move(part));
}

Part& add_vector(Parts& list, std::string name, Role role, std::int64_t width, bool bias) {
  Part part;
  part.name = std::move(name);
  part.role = role;
  part.out = width;
  part.bias = bias;
  part.kind = TensorClass::norm;
  list.push_back(std::move(part));
  return list.back();
}

Part& add_matrix(Parts& list, std::string name, Role role, std::int64_t in, std::int64_t out,
                 bool bias = false) {
  Part part;
  part.name = std::move(name);
  part.role = role;
  part.in = in;
  part.out = out;
  part.bias = bias;
  list.push_back(std::move(part));
  return list.back();
}

void add_qk_norm(Parts& list, const Attention& attention, std::string name, Role role,
                 std::int64_t heads) {
  if (attention.qk_norm == Attention::QkNorm::none) return;
  const bool per_head = attention.qk_norm == Attention::QkNorm::per_head;
  add_vector(list, std::move(name), role,
             per_head ? attention.head_dim : heads * attention.head_dim, false);
}

void add_indexer(Parts& list, const Model& model, const Indexer& indexer) {
  const std::string name = "self_attn.indexer";
  add_container(list, name);
  add_matrix(list, name + ".wq_b", Role::index_query, model.attention.latent->query_width,
             indexer.heads * indexer.width);
  add_matrix(list, name + ".wk", Role::index_key, model.hidden, indexer.width);
  add_vector(list, name + ".k_norm", Role::index_key_norm, indexer.width, true);
  add_matrix(list, name + ".weights_proj", Role::index_weights, model.hidden, indexer.heads);
}

void add_latent_attention(Parts& list, const Model& model) {
  const Attention& a = model.attention;
  const Latent& latent = *a.latent;
  const AttentionWidths widths = widths_of(a);
  add_container(list, "self_attn");
  if (latent.query_width > 0) {
    add_matrix(list, "self_attn.q_a_proj", Role::narrow_query, model.hidden, latent.query_width,
               a.qkv_bias);
    add_vector(list, "self_attn.q_a_layernorm", Role::narrow_query_norm, latent.query_width, false);
    add_matrix(list, "self_attn.q_b_proj", Role::wide_query, latent.query_width, widths.queries);
  } else {
    add_matrix(list, "self_attn.q_proj", Role::query, model.hidden, widths.queries);
  }
  add_matrix(list, "self_attn.kv_a_proj_with_mqa", Role::latent, model.hidden,
             latent.width + latent.rotary, a.qkv_bias);
  add_vector(list, "self_attn.kv_a_layernorm", Role::latent_norm, latent.width, false);
  const std::int64_t own_keys = widths.keys - a.heads * latent.rotary;
  add_matrix(list, "self_attn.kv_b_proj", Role::wide_latent, latent.width,
             own_keys + widths.values);
  if (a.indexer) add_indexer(list, model, *a.indexer);
  add_matrix(list, "self_attn.o_proj", Role::attention_output, widths.result, model.hidden,
             a.output_bias);
}

void add_attention(Parts& list, const Model& model) {
  const Attention& a = model.attention;
  if (a.latent) return add_latent_attention(list, model);
  const std::int64_t q = a.heads * a.head_dim;
  const std::int64_t kv = a.kv_heads * a.head_dim;
  if (a.sinks) {
    add_vector(list, "self_attn", Role::attend, a.heads, false);
    list.back().kind = TensorClass::dense;
  } else {
    add_container(list, "self_attn");
  }
  if (a.fused_qkv) {
    add_matrix(list, "self_attn.qkv_proj", Role::query_key_value, model.hidden, q + 2 * kv,
               a.qkv_bias);
    add_qk_norm(list, a, "self_attn.q_norm", Role::query_norm, a.heads);
    add_qk_norm(list, a, "self_attn.k_norm", Role::key_norm, a.kv_heads);
  } else {
    add_matrix(list, "self_attn.q_proj", Role::query, model.hidden, a.gated ? 2 * q : q,
               a.qkv_bias);
    add_qk_norm(list, a, "self_attn.q_norm", Role::query_norm, a.heads);
    add_matrix(list, "self_attn.k_proj", Role::key, model.hidden, kv, a.qkv_bias);
    add_qk_norm(list, a, "self_attn.k_norm", Role::key_norm, a.kv_heads);
    add_matrix(list, "self_attn.v_proj", Role::value, model.hidden, kv, a.qkv_bias);
  }
  add_matrix(list, "self_attn.o_proj", Role::attention_output, q, model.hidden, a.output_bias);
}

void add_constant(Parts& list, std::string name, std::int64_t elements) {
  add_vector(list, std::move(name), Role::mixer_constant, elements, false);
  list.back().kind = TensorClass::dense;
}

void add_convolution(Parts& list, std::string name, const Mixer& m) {
  add_matrix(list, std::move(name), Role::convolution, m.taps, m.convolved(), m.taps_bias);
}

void add_short_convolution(Parts& list, const Model& model, const Mixer& m) {
  add_container(list, "conv");
  add_matrix(list, "conv.in_proj", Role::mixer_in, model.hidden, 3 * m.channels(), m.bias);
  add_convolution(list, "conv.conv", m);
  add_matrix(list, "conv.out_proj", Role::mixer_out, m.channels(), model.hidden, m.bias);
}

void add_mamba(Parts& list, const Model& model, const Mixer& m) {
  const std::int64_t d = m.channels();
  add_container(list, "mamba");
  add_constant(list, "mamba.A_log", d * m.state);
  add_constant(list, "mamba.D", d);
  add_matrix(list, "mamba.in_proj", Role::mixer_in, model.hidden, 2 * d, m.bias);
  add_convolution(list, "mamba.conv1d", m);
  add_matrix(list, "mamba.x_proj", Role::mixer_narrow, d, m.step_width + 2 * m.state);
  add_vector(list, "mamba.dt_layernorm", Role::step_norm, m.step_width, false);
  add_vector(list, "mamba.b_layernorm", Role::put_norm, m.state, false);
  add_vector(list, "mamba.c_layernorm", Role::read_norm, m.state, false);
  add_matrix(list, "mamba.dt_proj", Role::mixer_steps, m.step_width, d, true);
  add_matrix(list, "mamba.out_proj", Role::mixer_out, d, model.hidden, m.bias);
}

void add_mamba2(Parts& list, const Model& model, const Mixer& m) {
  const std::int64_t d = m.channels();
  add_container(list, "mamba");
  for (const char* name : {"mamba.A_log", "mamba.D", "mamba.dt_bias"})
    add_constant(list, name, m.heads);
  add_matrix(list, "mamba.in_proj", Role::mixer_in, model.hidden, d + m.convolved() + m.heads,
             m.bias);
  add_convolution(list, "mamba.conv1d", m);
  if (m.normed) add_vector(list, "mamba.norm", Role::mixer_norm, d, false);
  add_matrix(list, "mamba.out_proj", Role::mixer_out, d, model.hidden, m.bias);
}

void add_delta_net(Parts& list, const Model& model, const Mixer& m) {
  const std::int64_t d = m.channels();
  add_container(list, "linear_attn");
  for (const char* name : {"linear_attn.dt_bias", "linear_attn.A_log"})
    add_constant(list, name, m.heads);
  if (m.split) {
    add_matrix(list, "linear_attn.in_proj_qkv", Role::mixer_in, model.hidden, m.convolved());
    add_matrix(list, "linear_attn.in_proj_z", Role::mixer_weigh, model.hidden, d);
    add_matrix(list, "linear_attn.in_proj_b", Role::mixer_put, model.hidden, m.heads);
    add_matrix(list, "linear_attn.in_proj_a", Role::mixer_forget, model.hidden, m.heads);
  } else {
    add_matrix(list, "linear_attn.in_proj_qkvz", Role::mixer_in, model.hidden, m.convolved() + d);
    add_matrix(list, "linear_attn.in_proj_ba", Role::mixer_gates, model.hidden, 2 * m.heads);
  }
  add_convolution(list, "linear_attn.conv1d", m);
  add_vector(list, "linear_attn.norm", Role::mixer_norm, m.width, false);
  add_matrix(list, "linear_attn.out_proj", Role::mixer_out, d, model.hidden);
}

void add_mixer(Parts& list, const Model& model) {
  const Mixer& m = *model.mixer;
  switch (m.kind) {
    case MixerKind::convolution:
      return add_short_convolution(list, model, m);
    case MixerKind::mamba:
      return add_mamba(list, model, m);
    case MixerKind::mamba2:
      return add_mamba2(list, model, m);
    case MixerKind::delta:
      return add_delta_net(list, model, m);
  }
}

struct FeedForwardRoles {
  Role gate, up, gate_up, activation, down;
};
constexpr FeedForwardRoles dense_roles{Role::gate, Role::up, Role::gate_up, Role::activation,
                                       Role::down};
constexpr FeedForwardRoles shared_roles{Role::shared_gate, Role::shared_up, Role::gate_up,
                                        Role::shared_activation, Role::shared_down};
constexpr FeedForwardRoles expert_roles{Role::expert_gate, Role::expert_up, Role::expert_gate_up,
                                        Role::container, Role::expert_down};

// down(activation(gate(x)) * up(x)), or down(activation(up(x))), evaluated from the inside out.
void add_feed_forward(Parts& list, const std::string& name, std::int64_t hidden,
                      const FeedForward& ffn, const FeedForwardRoles& roles) {
  add_container(list, name);
  if (ffn.gated && ffn.fused_gate_up)
    add_matrix(list, name + ".gate_up_proj", roles.gate_up, hidden, 2 * ffn.width, ffn.bias);
  else
    add_matrix(list, name + (ffn.gated ? ".gate_proj" : ".up_proj"),
               ffn.gated ? roles.gate : roles.up, hidden, ffn.width, ffn.bias);
  add_container(list, name + ".act_fn", roles.activation);
  if (ffn.gated && !ffn.fused_gate_up)
    add_matrix(list, name + ".up_proj", roles.up, hidden, ffn.width, ffn.bias);
  add_matrix(list, name + ".down_proj", roles.down, ffn.width, hidden, ffn.bias);
}

void add_experts(Parts& list, const Experts& e, std::int64_t hidden) {
  Parts experts;
  const std::string name = "mlp.experts";
  if (e.fused) {
    if (e.gated)
      add_matrix(experts, name + ".gate_up_proj", Role::expert_gate_up, hidden, 2 * e.width,
                 e.bias);
    else
      add_matrix(experts, name + ".up_proj", Role::expert_up, hidden, e.width, e.bias);
    add_matrix(experts, name + ".down_proj", Role::expert_down, e.width, hidden, e.bias);
  } else {
    const FeedForward one{
        .width = e.width, .gated = e.gated, .bias = e.bias, .fused_gate_up = false};
    add_feed_forward(experts, name, hidden, one, expert_roles);
  }
  for (Part& part : experts) {
    part.kind = TensorClass::expert;
    part.copies = e.count;
    part.stacked = e.fused;
    list.push_back(std::move(part));
  }
  if (e.fused) add_container(list, name + ".act_fn");
}

void add_moe(Parts& list, const Model& model) {
  const Experts& e = *model.experts;
  add_container(list, "mlp");
  add_matrix(list, "mlp.gate", Role::router, model.hidden, e.count, e.bias);
  add_experts(list, e, model.hidden);
  if (e.shared_width > 0)
    add_feed_forward(list, "mlp.shared_expert", model.hidden,
                     {.width = e.shared_width, .gated = e.gated, .fused_gate_up = e.shared_fused},
                     shared_roles);
  if (e.shared_gate)
    add_matrix(list, "mlp.shared_expert_gate", Role::shared_weight, model.hidden, 1);
}

// The matrix that an encoder's head reads, which has a norm where the head makes words.
void add_before_head(Parts& list, const Model& model) {
  using Makes = ModelHead::Makes;
  const Encoder& encoder = *model.encoder;
  const Makes makes = model.head.makes;
  const bool there = makes == Makes::words || makes == Makes::labels ||
                     (makes == Makes::nothing ? encoder.pooler : encoder.dense_of_tokens);
  if (!there) return;
  add_matrix(list, "head.dense", Role::head_dense, model.hidden, model.hidden, encoder.dense_bias);
  if (makes == Makes::words || encoder.norms_all)
    add_vector(list, "head.norm", Role::head_norm, model.hidden, model.norm_bias);
}

}  // namespace

bool in_attention(Role role) {
  return facts_of(role).block == Block::attention;
}

bool in_shared_expert(Role role) {
  return facts_of(role).block == Block::shared_expert;
}

bool in_mixer(Role role) {
  return facts_of(role).block == Block::mixer;
}

bool Part::multiplies() const {
  return in > 0 && role != Role::embedding && role != Role::positions;
}

std::int64_t Part::weights() const {
  return std::max<std::int64_t>(in, 1) * out;
}

std::int64_t Part::elements() const {
  return copies * ((borrowed ? 0 : weights()) + (bias ? out : 0));
}

std::int64_t Part::tensors() const {
  if (out == 0) return 0;
  return (stacked ? 1 : copies) * ((borrowed ? 0 : 1) + (bias ? 1 : 0));
}

std::vector<Part> layer_parts(const Model& model, std::int64_t layer) {
  assert(layer >= 0 && layer < model.layers);
  Parts list;
  const LayerKind kind = kind_of(model, layer);
  const auto norm = [&](const char* name, Role role) {
    add_vector(list, name, role, model.hidden, model.norm_bias).borrowed = !model.norm_weights;
  };
  const bool first = kind.mixes != LayerKind::Mixes::nothing;
  const bool second = kind.follows != LayerKind::Follows::nothing;
  const bool behind = model.norms == Norms::behind, both = model.norms == Norms::both;
  add_container(list, "layer");
  if (first && !behind) norm("input_layernorm", Role::attention_norm);
  if (kind.has_mixer()) add_mixer(list, model);
  if (kind.attends()) add_attention(list, model);
  // A norm of this name stands here in all families, once behind, once before.
  if (first && behind) norm("post_attention_layernorm", Role::attention_norm);
  if (first && both) norm("post_attention_layernorm", Role::attention_result_norm);
  if (model.scales)
    add_vector(list, "scale_of_attention", Role::attention_result_norm, model.hidden, false);
  if (second && !behind && model.norms != Norms::once)
    norm(both ? "pre_feedforward_layernorm" : "post_attention_layernorm", Role::feed_forward_norm);
  if (kind.follows == LayerKind::Follows::experts) add_moe(list, model);
  if (kind.follows == LayerKind::Follows::feed_forward)
    add_feed_forward(list, "mlp", model.hidden, model.feed_forward, dense_roles);
  if (second && behind) norm("post_feedforward_layernorm", Role::feed_forward_norm);
  if (second && both) norm("post_feedforward_layernorm", Role::feed_forward_result_norm);
  if (model.scales)
    add_vector(list, "scale_of_feedforward", Role::feed_forward_result_norm, model.hidden, false);
  return list;
}

std::vector<Part> outer_parts(const Model& model) {
  Parts list;
  const auto table = [&](const char* name, Role role, std::int64_t rows) -> Part& {
    Part& part = add_matrix(list, name, role, model.hidden, rows);
    part.kind = TensorClass::embedding;
    return part;
  };
  add_container(list, "causal_lm");
  add_container(list, "model");
  if (model.part.embeds) table("model.embed_tokens", Role::embedding, model.rows_of_table());
  if (model.positions == Positions::learned && model.part.embeds)
    table("model.embed_positions", Role::positions, model.rows_of_positions());
  if (model.encoder && model.encoder->segments > 0 && model.part.embeds)
    table("model.embed_segments", Role::positions, model.encoder->segments);
  if (model.attention.relative > 0 && model.part.embeds) {
    table("model.embed_distances", Role::positions, model.attention.relative);
    add_vector(list, "model.distances_norm", Role::embedding_norm, model.hidden, model.norm_bias);
  }
  if (model.norms_embedding && model.part.embeds)
    add_vector(list, "model.embed_norm", Role::embedding_norm, model.hidden, model.norm_bias);
  if (model.positions == Positions::rotary) add_container(list, "model.rotary_emb");
  if (!model.part.predicts) return list;
  if (!model.encoder || model.encoder->final_norm)
    add_vector(list, "model.norm", Role::final_norm, model.hidden, model.norm_bias).borrowed =
        !model.norm_weights;
  if (model.encoder) add_before_head(list, model);
  const ModelHead& asked = model.head;
  if (asked.has_words()) {
    Part& head = table("lm_head", Role::head, model.vocabulary);
    head.borrowed = model.tied_embeddings;
    head.bias = model.head_bias;
  }
  if (asked.has_labels()) table("score", Role::score, asked.labels).bias = asked.bias;
  return list;
}

Model layers_of(const Tower& tower) {
  Model model;
  model.name = "tower";
  model.layers = tower.layers;
  model.hidden = tower.hidden;
  model.attention = {.heads = tower.heads,
                     .kv_heads = tower.heads,
                     .head_dim = tower.head_dim,
                     .qkv_bias = tower.bias,
                     .output_bias = tower.bias,
                     .fused_qkv = tower.fused_qkv,
                     .sliding_window = tower.window,
                     .full_every = tower.full_every};
  model.feed_forward = {.width = tower.width, .gated = tower.gated, .bias = tower.bias};
  model.positions = tower.rotary ? Positions::rotary : Positions::none;
  model.norm_bias = tower.norm_bias;
  model.scales = tower.scales;
  model.part = {.embeds = false, .predicts = false};
  if (tower.norm_bias) model.encoder = Encoder{};
  return model;
}

std::vector<Part> parts_before(const Tower& tower) {
  Parts list;
  add_container(list, "vision");
  add_matrix(list, "vision.patch_embed", Role::patches, tower.depth * tower.patch * tower.patch,
             tower.hidden, tower.patch_bias);
  if (tower.classes + tower.positions > 0)
    add_vector(list, "vision.places", Role::places,
               (tower.classes + tower.positions) * tower.hidden, false);
  if (tower.norm_first)
    add_vector(list, "vision.pre_norm", Role::tower_norm, tower.hidden, tower.norm_bias);
  return list;
}

std::vector<Part> parts_behind(const Tower& tower) {
  Parts list;
  if (tower.norm_last)
    add_vector(list, "vision.post_norm", Role::tower_norm, tower.hidden, tower.norm_bias);
  for (const Tower::Projection& each : tower.projector) {
    Part& part = each.in > 0
                     ? add_matrix(list, each.name, Role::projector, each.in, each.out, each.bias)
                     : add_vector(list, each.name, Role::projector_norm, each.out, each.bias);
    part.copies = each.copies;
  }
  return list;
}

}  // namespace stepsim
