#include <cmath>

#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

// A GPT of the older kind: one qkv matrix, up and down, LayerNorm, biases or none anywhere.
Model make_gpt(bool bias) {
  Model model;
  model.attention.fused_qkv = true;
  set_bias(model, bias);
  model.feed_forward.gated = false;
  model.feed_forward.bias = bias;
  model.norm_bias = bias;
  return model;
}

// Alibi and rope are choices within the attention; a model with neither learns its positions.
Positions mpt_positions(const Table& root, const std::optional<Table>& attention) {
  if (attention && attention->flag_or("alibi", false)) return Positions::alibi;
  if (attention && attention->flag_or("rope", false)) return Positions::rotary;
  if (!root.flag_or("learned_pos_emb", true))
    root.problem("learned_pos_emb", "a model without any positions is not supported");
  return Positions::learned;
}

std::int64_t mpt_kv_heads(const std::optional<Table>& attention, std::int64_t heads) {
  if (!attention) return heads;
  const std::string type = attention->text_or("attn_type", "multihead_attention");
  if (attention->flag_or("qk_ln", false)) attention->problem("qk_ln", "is not supported");
  if (type == "multiquery_attention") return 1;
  return attention->integer_or("kv_n_heads", heads, 1, hf_limits.heads);
}

}  // namespace

Model read_gpt2(const Table& root) {
  Model model = make_gpt(true);
  model.layers = root.integer("n_layer", 1, hf_limits.layers);
  model.hidden = root.integer("n_embd", 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer("n_positions", 1, hf_limits.tokens);
  model.positions = Positions::learned;
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
  model.feed_forward.width = root.integer_or("n_inner", 4 * model.hidden, 1, 4 * hf_limits.width);
  read_heads(root, {"n_head", "", "n_embd"}, model);
  return model;
}

// GPT-NeoX adds attention and feed-forward to the same input; both have a norm of their own.
Model read_gpt_neox(const Table& root) {
  Model model = read_decoder(root);
  model.attention.fused_qkv = true;
  model.norm_bias = true;
  set_bias(model, root.flag_or("attention_bias", true));
  model.feed_forward.gated = false;
  model.feed_forward.bias = true;
  read_rotary(root, "rotary_pct", 0.25, model);
  return model;
}

// LayerNorm and biases of a GPT, queries, keys and values as in Llama.
Model read_starcoder2(const Table& root) {
  Model model = read_decoder(root, {.tied = true});
  const bool bias = root.flag_or("use_bias", true);
  set_bias(model, bias);
  model.norm_bias = true;
  model.feed_forward.gated = false;
  model.feed_forward.bias = bias;
  read_window(root, model);
  return model;
}

namespace {

Model read_mpt_with(const Table& root, bool no_bias) {
  Model model = make_gpt(!root.flag_or("no_bias", no_bias));
  model.layers = root.integer("n_layers", 1, hf_limits.layers);
  model.hidden = root.integer("d_model", 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer("max_seq_len", 1, hf_limits.tokens);
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
  const double width =
      root.number_or("expansion_ratio", 4, 0, 100) * static_cast<double>(model.hidden);
  if (width != std::floor(width) || width < 1)
    root.problem("expansion_ratio",
                 "expected a multiple of d_model that is a whole number above 0");
  model.feed_forward.width = static_cast<std::int64_t>(width);
  const auto attention = root.table_if("attn_config");
  model.positions = mpt_positions(root, attention);
  read_heads(root, {"n_heads", "", "d_model"}, model);
  model.attention.kv_heads = mpt_kv_heads(attention, model.attention.heads);
  return model;
}

}  // namespace

// llm-foundry's own class has biases unless its file says otherwise, that of transformers has none.
Model read_mpt(const Table& root) {
  return read_mpt_with(root, false);
}
Model read_mpt_of_transformers(const Table& root) {
  return read_mpt_with(root, true);
}

}  // namespace stepsim
