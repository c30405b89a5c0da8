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

// The first of these keys that the file has, else the last: families renamed theirs.
std::string_view either(const Table& root, std::string_view first, std::string_view second) {
  return root.has(first) ? first : second;
}

// Layers, widths and heads of a GPT whose feed-forward is four times as wide unless it is said.
struct GptKeys {
  std::string_view layers, hidden, heads, width, positions;
};
void read_gpt_widths(const Table& root, const GptKeys& keys, Model& model) {
  model.layers = root.integer(keys.layers, 1, hf_limits.layers);
  model.hidden = root.integer(keys.hidden, 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer_or(keys.positions, 2048, 1, hf_limits.tokens);
  model.feed_forward.width = root.integer_or(keys.width, 4 * model.hidden, 1, 4 * hf_limits.width);
  read_heads(root, {keys.heads, "", keys.hidden}, model);
}

void read_mpt_with(const Table& root, bool no_bias, Model& model) {
  model = make_gpt(!root.flag_or("no_bias", no_bias));
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
}

}  // namespace

void finish_gpt2(const Table& root, Model& model) {
  model = make_gpt(true);
  model.layers = root.integer("n_layer", 1, hf_limits.layers);
  model.hidden = root.integer("n_embd", 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer("n_positions", 1, hf_limits.tokens);
  model.positions = Positions::learned;
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
  model.feed_forward.width = root.integer_or("n_inner", 4 * model.hidden, 1, 4 * hf_limits.width);
  read_heads(root, {"n_head", "", "n_embd"}, model);
}

// Two rows of its positions belong to no token. Its smallest but one has a table narrower than its
// layers and norms behind them.
void finish_opt(const Table& root, Model& model) {
  model.spare_positions = 2;
  if (!root.flag_or("do_layer_norm_before", true))
    root.problem("do_layer_norm_before", "norms behind a sum are not modelled (OPT 350M)");
  if (root.integer_or("word_embed_proj_dim", model.hidden, 1, hf_limits.width) != model.hidden)
    root.problem("word_embed_proj_dim", "a table narrower than the layers is not modelled");
}

void finish_bloom(const Table& root, Model& model) {
  model = make_gpt(true);
  read_gpt_widths(
      root,
      {either(root, "n_layer", "num_hidden_layers"), either(root, "n_embed", "hidden_size"),
       either(root, "n_head", "num_attention_heads"), "", "seq_length"},
      model);
  model.positions = Positions::alibi;
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
  model.norms_embedding = true;
}

// Attention and feed-forward read the same input; from 40B on each has a norm of its own.
void finish_falcon(const Table& root, Model& model) {
  model = make_gpt(root.flag_or("bias", false));
  model.norm_bias = true;
  read_gpt_widths(
      root,
      {either(root, "n_layer", "num_hidden_layers"), "hidden_size",
       either(root, "n_head", "num_attention_heads"), "ffn_hidden_size", "max_position_embeddings"},
      model);
  const bool later = root.flag_or("new_decoder_architecture", false);
  const std::string_view shared = either(root, "n_head_kv", "num_kv_heads");
  if (later)
    model.attention.kv_heads = root.integer_or(shared, model.attention.heads, 1, hf_limits.heads);
  else if (root.flag_or("multi_query", true))
    model.attention.kv_heads = 1;
  if (root.sound() && model.attention.heads % model.attention.kv_heads != 0)
    root.problem(shared, "must divide the heads");
  if (root.flag_or("alibi", false)) model.positions = Positions::alibi;
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
  const std::int64_t norms = root.integer_or("num_ln_in_parallel_attn", later ? 2 : 1, 1, 2);
  if (later ? norms == 1 : root.flag_or("parallel_attn", true)) model.norms = Norms::once;
}

// Feed-forward has biases, attention none, and the head has one.
void finish_gptj(const Table& root, Model& model) {
  model = make_gpt(true);
  set_bias(model, false);
  read_gpt_widths(root, {"n_layer", "n_embd", "n_head", "n_inner", "n_positions"}, model);
  model.attention.fused_qkv = false;
  model.attention.rotary = root.integer_or("rotary_dim", 64, 0, model.attention.head_dim);
  if (model.attention.rotary == model.attention.head_dim) model.attention.rotary = 0;
  model.norms = Norms::once;
  model.head_bias = true;
  if (root.flag_or("tie_word_embeddings", false))
    root.problem("tie_word_embeddings", "a tied head with a bias is not modelled");
}

// Its local layers are masks over all scores, which are made all the same.
void finish_gpt_neo(const Table& root, Model& model) {
  model = make_gpt(true);
  read_gpt_widths(
      root,
      {"num_layers", "hidden_size", "num_heads", "intermediate_size", "max_position_embeddings"},
      model);
  model.attention.fused_qkv = false;
  model.attention.qkv_bias = false;
  model.positions = Positions::learned;
  model.tied_embeddings = root.flag_or("tie_word_embeddings", true);
}

// GPT-2 with one head of keys and values.
void finish_gpt_bigcode(const Table& root, Model& model) {
  finish_gpt2(root, model);
  if (root.flag_or("multi_query", true)) model.attention.kv_heads = 1;
}

// llm-foundry's own class has biases unless its file says otherwise, that of transformers has none.
void finish_mpt(const Table& root, Model& model) {
  read_mpt_with(root, false, model);
}
void finish_mpt_of_transformers(const Table& root, Model& model) {
  read_mpt_with(root, true, model);
}

}  // namespace stepsim
