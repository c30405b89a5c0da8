#include <fmt/format.h>

#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

// Experts stand in each interleave_moe_layer_step-th layer, unless `moe_layers` lists them.
void read_llama4_experts(const Table& text, Model& model) {
  const std::int64_t step = text.integer_or("interleave_moe_layer_step", 1, 0, hf_limits.layers);
  const std::vector<std::int64_t> listed = integers(text, "moe_layers");
  if (step == 0 || (text.has("moe_layers") && listed.empty())) return;
  Experts experts = read_experts(text, {"num_local_experts", "intermediate_size", "", ""});
  experts.every = step;
  experts.shared_width = experts.width;
  experts.fused = true;
  model.experts = experts;
  if (listed.empty() || !text.sound()) return;
  std::vector<std::int64_t> expected;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (has_experts(model, layer)) expected.push_back(layer);
  if (listed != expected)
    text.problem(
        "moe_layers",
        fmt::format("only each interleave_moe_layer_step-th layer ({}) may have experts", step));
}

// Every fourth layer attends, and weighs what it finds; the others are delta nets. Called behind
// what says which layers have experts.
void put_delta_layers(const Table& root, Model& model) {
  model.attention.gated = true;
  Mixer mixer{.kind = MixerKind::delta};
  mixer.heads = root.integer_or("linear_num_value_heads", 32, 1, hf_limits.heads);
  mixer.width = root.integer_or("linear_value_head_dim", 128, 1, hf_limits.heads);
  mixer.groups = root.integer_or("linear_num_key_heads", 16, 1, hf_limits.heads);
  mixer.state = root.integer_or("linear_key_head_dim", 128, 1, hf_limits.heads);
  mixer.taps = root.integer_or("linear_conv_kernel_dim", 4, 1, hf_limits.taps);
  mixer.chunk = 64;  // of the kernels
  mixer.wide_state = keeps_wide_state(root, "mamba_ssm_dtype", false);
  model.mixer = mixer;
  if (root.has("layer_types"))
    return set_kinds(root, "layer_types", model,
                     {{"linear_attention", LayerKind::Mixes::mixer},
                      {"full_attention", LayerKind::Mixes::attention}});
  const std::int64_t every = root.integer_or("full_attention_interval", 4, 1, hf_limits.layers);
  std::vector<LayerKind::Mixes> mixes;
  mixes.reserve(static_cast<std::size_t>(model.layers));
  for (std::int64_t layer = 1; layer <= model.layers; ++layer)
    mixes.push_back(layer % every == 0 ? LayerKind::Mixes::attention : LayerKind::Mixes::mixer);
  set_kinds(model, mixes);
}

// An indexer of its own in each layer.
void put_indexer(const Table& root, Model& model, std::int64_t heads) {
  const Indexer indexer{.heads = root.integer_or("index_n_heads", heads, 1, hf_limits.heads),
                        .width = root.integer_or("index_head_dim", 128, 1, hf_limits.heads),
                        .chosen = root.integer_or("index_topk", 2048, 1, hf_limits.tokens)};
  model.attention.indexer = indexer;
  if (root.sound() && model.attention.latent->query_width == 0)
    root.problem("q_lora_rank", "an indexer reads the narrow vector of queries: expected a width");
}

// One number, or one for each layer, which must be the same.
std::int64_t of_all_layers(const Table& root, std::string_view key, std::int64_t usual,
                           std::int64_t most) {
  const bool listed = root.has(key) && root.one_line(key).starts_with('[');
  if (!listed) return root.integer_or(key, usual, 0, most);
  const std::vector<std::int64_t> list = integers(root, key);
  if (list.empty()) return usual;
  for (const std::int64_t each : list)
    if (each != list.front() || each < 0 || each > most) {
      root.problem(key, "only the same number in all layers is modelled");
      break;
    }
  return list.front();
}

}  // namespace

void finish_qwen3_next(const Table& root, Model& model) {
  put_delta_layers(root, model);
}

void finish_qwen3_5(const Table& root, Model& model) {
  put_delta_layers(root, model);
  model.mixer->split = true;
}

void finish_deepseek_v32(const Table& root, Model& model) {
  put_indexer(root, model, 64);
}

// Since 5.2 most layers take the tokens that one before them has chosen.
void finish_glm_dsa(const Table& root, Model& model) {
  put_indexer(root, model, 32);
  constexpr std::string_view shared = "layers that share what one of them chose are not modelled";
  if (root.integer_or("index_topk_freq", 1, 1, hf_limits.layers) > 1)
    root.problem("index_topk_freq", shared);
  for (const std::string_view key : {"indexer_types", "index_topk_pattern"})
    if (root.has(key)) root.problem(key, shared);
}

// The text tower alone. Layers without rotary positions see everything; the others see the chunk
// that they are in.
void finish_llama4(const Table& text, Model& model) {
  read_llama4_experts(text, model);
  model.feed_forward.width = text.integer("intermediate_size_mlp", 1, hf_limits.width);
  model.attention.chunked = true;
  model.attention.sliding_window = text.integer_or("attention_chunk_size", 0, 0, hf_limits.tokens);
  model.attention.full_every = text.integer_or("no_rope_layer_interval", 4, 1, hf_limits.layers);
  std::vector<bool> full;
  for (const std::int64_t rotary : integers(text, "no_rope_layers")) full.push_back(rotary == 0);
  if (text.has("layer_types"))
    read_layer_types(text, model);
  else if (!full.empty())
    set_full_layers(text, "no_rope_layers", model, full);
}

// Its experts are rows of three matrices, which its code takes apart once: no expert's gradient is
// as large as all of them, as it is where each is cut out of a stack.
void finish_dbrx(const Table& root, Model& model) {
  model.layers = root.integer("n_layers", 1, hf_limits.layers);
  model.hidden = root.integer("d_model", 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer("max_seq_len", 1, hf_limits.tokens);
  model.tied_embeddings = root.flag_or("tie_word_embeddings", false);
  model.attention.fused_qkv = true;
  read_heads(root, {"n_heads", "", "d_model"}, model);
  const Table attention = root.table("attn_config"), feed_forward = root.table("ffn_config");
  model.attention.kv_heads = attention.integer("kv_n_heads", 1, hf_limits.heads);
  if (root.sound() && model.attention.heads % model.attention.kv_heads != 0)
    attention.problem("kv_n_heads", "must divide n_heads");
  model.experts =
      read_experts(feed_forward, {"moe_num_experts", "ffn_hidden_size", "", "", "moe_top_k"});
}

// Hunyuan-A13B: a shared expert as wide as a dense layer would be.
void finish_hunyuan_moe(const Table& root, Model& model) {
  if (root.has("attention_head_dim"))
    model.attention.head_dim = root.integer("attention_head_dim", 1, hf_limits.heads);
  const std::int64_t width = model.feed_forward.width;
  Experts experts;
  experts.count = of_all_layers(root, "num_experts", 1, hf_limits.experts);
  experts.per_token = of_all_layers(root, "moe_topk", 1, hf_limits.experts);
  experts.width = of_all_layers(root, "moe_intermediate_size", width, hf_limits.width);
  experts.shared_width = width * of_all_layers(root, "num_shared_expert", 1, hf_limits.shared);
  experts.first_dense = root.integer_or("moe_layer_num_skipped", 0, 0, hf_limits.layers);
  if (root.sound() && (experts.count < 2 || experts.per_token < 1 || experts.width < 1 ||
                       experts.per_token > experts.count))
    root.problem("moe_topk", "expected some of at least two experts");
  model.experts = experts;
}

}  // namespace stepsim
