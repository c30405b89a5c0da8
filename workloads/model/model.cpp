#include "workloads/model/model.hpp"

#include <cassert>
#include <numeric>

namespace stepsim {
namespace {

using Modules = std::vector<Module>;

struct Matrix {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = false;
  TensorClass kind = TensorClass::dense;
};

// Containers, activations: called, and with hooks of their own, but without tensors.
void add_plain(Modules& list, std::string name) {
  list.push_back({std::move(name), {}});
}

void add_linear(Modules& list, const std::string& name, const Matrix& matrix) {
  Module module{name, {{name + ".weight", matrix.in * matrix.out, matrix.kind}}};
  if (matrix.bias) module.tensors.push_back({name + ".bias", matrix.out, matrix.kind});
  list.push_back(std::move(module));
}

void add_norm(Modules& list, const std::string& name, std::int64_t width, bool bias) {
  Module module{name, {{name + ".weight", width, TensorClass::norm}}};
  if (bias) module.tensors.push_back({name + ".bias", width, TensorClass::norm});
  list.push_back(std::move(module));
}

void add_qk_norm(Modules& list, const Attention& attention, const std::string& name,
                 std::int64_t heads) {
  if (attention.qk_norm == Attention::QkNorm::none) return;
  const bool per_head = attention.qk_norm == Attention::QkNorm::per_head;
  add_norm(list, name, per_head ? attention.head_dim : heads * attention.head_dim, false);
}

void add_latent_attention(Modules& list, const Model& model) {
  const Attention& a = model.attention;
  const Latent& latent = *a.latent;
  const AttentionWidths widths = widths_of(a);
  add_plain(list, "self_attn");
  if (latent.query_width > 0) {
    add_linear(list, "self_attn.q_a_proj", {model.hidden, latent.query_width, a.qkv_bias});
    add_norm(list, "self_attn.q_a_layernorm", latent.query_width, false);
    add_linear(list, "self_attn.q_b_proj", {latent.query_width, widths.queries});
  } else {
    add_linear(list, "self_attn.q_proj", {model.hidden, widths.queries});
  }
  add_linear(list, "self_attn.kv_a_proj_with_mqa",
             {model.hidden, latent.width + latent.rotary, a.qkv_bias});
  add_norm(list, "self_attn.kv_a_layernorm", latent.width, false);
  const std::int64_t own_keys = widths.keys - a.heads * latent.rotary;
  add_linear(list, "self_attn.kv_b_proj", {latent.width, own_keys + widths.values});
  add_linear(list, "self_attn.o_proj", {widths.result, model.hidden, a.output_bias});
}

void add_attention(Modules& list, const Model& model) {
  const Attention& a = model.attention;
  if (a.latent) return add_latent_attention(list, model);
  const std::int64_t q = a.heads * a.head_dim;
  const std::int64_t kv = a.kv_heads * a.head_dim;
  add_plain(list, "self_attn");
  if (a.sinks) list.back().tensors = {{"self_attn.sinks", a.heads, TensorClass::dense}};
  if (a.fused_qkv) {
    add_linear(list, "self_attn.qkv_proj", {model.hidden, q + 2 * kv, a.qkv_bias});
    add_qk_norm(list, a, "self_attn.q_norm", a.heads);
    add_qk_norm(list, a, "self_attn.k_norm", a.kv_heads);
  } else {
    add_linear(list, "self_attn.q_proj", {model.hidden, q, a.qkv_bias});
    add_qk_norm(list, a, "self_attn.q_norm", a.heads);
    add_linear(list, "self_attn.k_proj", {model.hidden, kv, a.qkv_bias});
    add_qk_norm(list, a, "self_attn.k_norm", a.kv_heads);
    add_linear(list, "self_attn.v_proj", {model.hidden, kv, a.qkv_bias});
  }
  add_linear(list, "self_attn.o_proj", {q, model.hidden, a.output_bias});
}

// down(activation(gate(x)) * up(x)), or down(activation(up(x))), evaluated from the inside out.
void add_feed_forward(Modules& list, const std::string& name, std::int64_t hidden,
                      const FeedForward& ffn, TensorClass kind) {
  add_plain(list, name);
  if (ffn.gated && ffn.fused_gate_up)
    add_linear(list, name + ".gate_up_proj", {hidden, 2 * ffn.width, ffn.bias, kind});
  else
    add_linear(list, name + (ffn.gated ? ".gate_proj" : ".up_proj"),
               {hidden, ffn.width, ffn.bias, kind});
  add_plain(list, name + ".act_fn");
  if (ffn.gated && !ffn.fused_gate_up)
    add_linear(list, name + ".up_proj", {hidden, ffn.width, ffn.bias, kind});
  add_linear(list, name + ".down_proj", {ffn.width, hidden, ffn.bias, kind});
}

void add_fused_experts(Modules& list, const Experts& e, std::int64_t hidden) {
  const std::string name = "mlp.experts";
  const auto kind = TensorClass::expert;
  Module module{name,
                {{name + ".gate_up_proj", e.count * hidden * 2 * e.width, kind},
                 {name + ".down_proj", e.count * e.width * hidden, kind}}};
  if (e.bias) {
    module.tensors.push_back({name + ".gate_up_proj_bias", e.count * 2 * e.width, kind});
    module.tensors.push_back({name + ".down_proj_bias", e.count * hidden, kind});
  }
  list.push_back(std::move(module));
  add_plain(list, name + ".act_fn");
}

void add_moe(Modules& list, const Model& model) {
  const Experts& e = *model.experts;
  add_plain(list, "mlp");
  add_linear(list, "mlp.gate", {model.hidden, e.count, e.bias});
  if (e.fused) {
    add_fused_experts(list, e, model.hidden);
  } else {
    const FeedForward one{.width = e.width, .gated = true, .bias = e.bias, .fused_gate_up = false};
    for (std::int64_t i = 0; i < e.count; ++i)
      add_feed_forward(list, "mlp.experts." + std::to_string(i), model.hidden, one,
                       TensorClass::expert);
  }
  if (e.shared_width > 0)
    add_feed_forward(list, "mlp.shared_expert", model.hidden, {.width = e.shared_width},
                     TensorClass::dense);
  if (e.shared_gate) add_linear(list, "mlp.shared_expert_gate", {model.hidden, 1});
}

void add_to(ParameterCount& count, const Modules& modules, std::int64_t times) {
  for (const Module& module : modules)
    for (const Tensor& tensor : module.tensors) {
      count.elements[static_cast<std::size_t>(tensor.kind)] += times * tensor.elements;
      count.tensors += times;
    }
}

}  // namespace

std::int64_t whole_layer(const Model& model, std::int64_t layer) {
  const auto& places = model.part.places;
  return places.empty() ? layer : places[static_cast<std::size_t>(layer)];
}

AttentionWidths widths_of(const Attention& a) {
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  if (!a.latent) return {q, kv, kv, q};
  const std::int64_t v = a.heads * a.latent->value;
  return {q, q, v, v};
}

bool has_experts(const Model& model, std::int64_t layer) {
  const std::int64_t place = whole_layer(model, layer);
  return model.experts && place >= model.experts->first_dense &&
         (place + 1) % model.experts->every == 0;
}

std::int64_t expert_layers(const Model& model) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    count += has_experts(model, layer) ? 1 : 0;
  return count;
}

std::int64_t window_of(const Model& model, std::int64_t layer) {
  const Attention& a = model.attention;
  const bool full = a.full_every > 0 && (whole_layer(model, layer) + 1) % a.full_every == 0;
  return full ? 0 : a.sliding_window;
}

std::vector<Module> layer_modules(const Model& model, std::int64_t layer) {
  assert(layer >= 0 && layer < model.layers);
  Modules list;
  const auto norm = [&](const char* name) { add_norm(list, name, model.hidden, model.norm_bias); };
  add_plain(list, "layer");
  if (!model.norm_after) norm("input_layernorm");
  add_attention(list, model);
  norm("post_attention_layernorm");  // in both orders it stands here, once after, once before
  if (has_experts(model, layer))
    add_moe(list, model);
  else
    add_feed_forward(list, "mlp", model.hidden, model.feed_forward, TensorClass::dense);
  if (model.norm_after) norm("post_feedforward_layernorm");
  return list;
}

std::vector<Module> outer_modules(const Model& model) {
  const auto table = TensorClass::embedding;
  Modules list;
  add_plain(list, "causal_lm");
  add_plain(list, "model");
  if (model.part.embeds)
    add_linear(list, "model.embed_tokens", {model.hidden, model.rows_of_table(), false, table});
  if (model.positions == Positions::learned && model.part.embeds)
    add_linear(list, "model.embed_positions", {model.hidden, model.longest_sequence, false, table});
  if (model.positions == Positions::rotary) add_plain(list, "model.rotary_emb");
  if (!model.part.predicts) return list;
  add_norm(list, "model.norm", model.hidden, model.norm_bias);
  // Tied: the head is called, but its matrix is the embedding's and counts there.
  if (model.tied_embeddings)
    add_plain(list, "lm_head");
  else
    add_linear(list, "lm_head", {model.hidden, model.vocabulary, false, table});
  return list;
}

std::int64_t ParameterCount::total() const {
  return std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  add_to(count, outer_modules(model), 1);
  // Two kinds of layer at most, and all of one kind are alike.
  const std::int64_t with_experts = expert_layers(model);
  for (const bool experts : {false, true})
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      if (has_experts(model, layer) != experts) continue;
      add_to(count, layer_modules(model, layer),
             experts ? with_experts : model.layers - with_experts);
      break;
    }
  if (model.experts && model.experts->selection_bias)
    count.buffers = with_experts * model.experts->count;
  return count;
}

std::int64_t active_parameters(const Model& model) {
  const ParameterCount count = count_parameters(model);
  if (!model.experts) return count.total();
  const Experts& e = *model.experts;
  return count.total() - count.of(TensorClass::expert) / e.count * (e.count - e.per_token);
}

}  // namespace stepsim
