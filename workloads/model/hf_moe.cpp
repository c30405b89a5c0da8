#include <fmt/format.h>

#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

void read_qwen_moe(const Table& root, Model& model, const ExpertKeys& keys) {
  Experts experts = read_experts(root, keys);
  experts.every = root.integer_or("decoder_sparse_step", 1, 1, hf_limits.layers);
  const std::vector<std::int64_t> dense = integers(root, "mlp_only_layers");
  for (std::size_t i = 0; i < dense.size(); ++i)
    if (dense[i] != static_cast<std::int64_t>(i)) {
      root.problem("mlp_only_layers", "only the first layers may be without experts: 0, 1, ...");
      break;
    }
  experts.first_dense = static_cast<std::int64_t>(dense.size());
  model.experts = experts;
}

Model read_bailing(const Table& root, bool second) {
  Model model = read_decoder(root);
  model.attention.fused_qkv = true;
  model.attention.qkv_bias = root.flag_or("use_qkv_bias", false);
  model.attention.output_bias = root.flag_or("use_bias", false);
  if (root.flag_or("use_qk_norm", second)) model.attention.qk_norm = Attention::QkNorm::per_head;
  Experts experts =
      read_experts(root, {"num_experts", "moe_intermediate_size", "num_shared_experts",
                          "moe_shared_expert_intermediate_size"});
  experts.first_dense = root.integer_or("first_k_dense_replace", 0, 0, hf_limits.layers);
  experts.selection_bias = root.flag_or("moe_router_enable_expert_bias", second);
  experts.masked = true;
  model.experts = experts;
  return model;
}

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

}  // namespace

Model read_qwen2_moe(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = root.flag_or("qkv_bias", true);
  read_qwen_moe(root, model,
                {"num_experts", "moe_intermediate_size", "", "shared_expert_intermediate_size"});
  model.experts->shared_gate = model.experts->shared_width > 0;
  read_qwen_window(root, model);
  return model;
}

Model read_qwen3_moe(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::per_head;
  read_qwen_moe(root, model, {"num_experts", "moe_intermediate_size", "", ""});
  read_qwen_window(root, model);
  return model;
}

Model read_olmoe(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::full_width;
  model.experts = read_experts(root, {"num_experts", "intermediate_size", "", ""});
  return model;
}

Model read_minimax_m2(const Table& root) {
  Model model = read_decoder(root);
  if (root.flag_or("use_qk_norm", true)) model.attention.qk_norm = Attention::QkNorm::full_width;
  model.attention.rotary = root.integer_or("rotary_dim", 64, 0, model.attention.head_dim);
  model.experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
  model.experts->selection_bias = root.flag_or("use_routing_bias", true);
  return model;
}

Model read_ernie_moe(const Table& root) {
  Model model = read_decoder(root, {.tied = true});
  set_bias(model, root.flag_or("use_bias", false));
  model.experts = read_experts(
      root, {"moe_num_experts", "moe_intermediate_size", "moe_num_shared_experts", "", "moe_k"});
  model.experts->first_dense = root.integer_or("moe_layer_start_index", 1, 0, hf_limits.layers);
  root.integer_or("moe_layer_interval", 1, 1, 1);
  model.experts->selection_bias = true;
  return model;
}

Model read_mixtral(const Table& root) {
  Model model = read_decoder(root);
  model.experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
  read_window(root, model);
  return model;
}

Model read_gpt_oss(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", true));
  model.attention.sinks = true;
  model.experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
  model.experts->bias = true;
  model.experts->fused = true;
  model.attention.full_every = 2;
  read_window(root, model);
  return model;
}

Model read_glm4_moe(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = root.flag_or("attention_bias", false);
  if (root.flag_or("use_qk_norm", false)) model.attention.qk_norm = Attention::QkNorm::per_head;
  Experts experts =
      read_experts(root, {"n_routed_experts", "moe_intermediate_size", "n_shared_experts", ""});
  experts.first_dense = root.integer_or("first_k_dense_replace", 1, 0, hf_limits.layers);
  experts.selection_bias = true;
  model.experts = experts;
  return model;
}

namespace {

// Every fourth layer attends, and weighs what it finds; the others are delta nets.
Model read_delta_decoder(const Table& root, std::string_view width = "intermediate_size") {
  Model model = read_decoder(root, {.width = width, .heads = {.width = 256}});
  Attention& a = model.attention;
  set_bias(model, root.flag_or("attention_bias", false));
  a.qk_norm = Attention::QkNorm::per_head;
  a.gated = true;
  read_rotary(root, "partial_rotary_factor", 0.25, model);
  Mixer mixer{.kind = MixerKind::delta};
  mixer.heads = root.integer_or("linear_num_value_heads", 32, 1, hf_limits.heads);
  mixer.width = root.integer_or("linear_value_head_dim", 128, 1, hf_limits.heads);
  mixer.groups = root.integer_or("linear_num_key_heads", 16, 1, hf_limits.heads);
  mixer.state = root.integer_or("linear_key_head_dim", 128, 1, hf_limits.heads);
  mixer.taps = root.integer_or("linear_conv_kernel_dim", 4, 1, hf_limits.taps);
  mixer.chunk = 64;  // of the kernels
  mixer.wide_state = keeps_wide_state(root, "mamba_ssm_dtype", false);
  model.mixer = mixer;
  return model;
}

// Sets which layers are delta nets; it is called behind what says which layers have experts.
Model with_delta_layers(const Table& root, Model model) {
  if (root.has("layer_types")) {
    set_kinds(root, "layer_types", model,
              {{"linear_attention", LayerKind::Mixes::mixer},
               {"full_attention", LayerKind::Mixes::attention}});
    return model;
  }
  const std::int64_t every = root.integer_or("full_attention_interval", 4, 1, hf_limits.layers);
  std::vector<LayerKind::Mixes> mixes;
  for (std::int64_t layer = 1; layer <= model.layers; ++layer)
    mixes.push_back(layer % every == 0 ? LayerKind::Mixes::attention : LayerKind::Mixes::mixer);
  set_kinds(model, mixes);
  return model;
}

constexpr ExpertKeys qwen3_next_experts{"num_experts", "moe_intermediate_size", "",
                                        "shared_expert_intermediate_size"};

}  // namespace

Model read_qwen3_5(const Table& root) {
  Model model = read_delta_decoder(root);
  model.mixer->split = true;
  return with_delta_layers(root, std::move(model));
}

Model read_qwen3_5_moe(const Table& root) {
  Model model = read_delta_decoder(root, qwen3_next_experts.width);  // no layer is dense
  model.mixer->split = true;
  Experts experts = read_experts(root, qwen3_next_experts);
  experts.fused = true;
  experts.shared_gate = experts.shared_width > 0;
  model.experts = experts;
  return with_delta_layers(root, std::move(model));
}

Model read_qwen3_next(const Table& root) {
  Model model = read_delta_decoder(root);
  read_qwen_moe(root, model, qwen3_next_experts);
  model.experts->shared_gate = model.experts->shared_width > 0;
  return with_delta_layers(root, std::move(model));
}

Model read_granite_moe(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
  model.experts->fused = true;
  return model;
}

Model read_deepseek_v2(const Table& root) {
  Model model = read_deepseek(root);
  model.experts->selection_bias = false;
  return model;
}

// Keys and values out of one narrow vector a token; queries out of another one, or directly.
Model read_deepseek(const Table& root) {
  Model model = read_decoder(root, {.heads = {.width = 1}});  // the width is set below
  read_latent(root, model);
  set_bias(model, root.flag_or("attention_bias", false));
  Experts experts =
      read_experts(root, {"n_routed_experts", "moe_intermediate_size", "n_shared_experts", ""});
  experts.first_dense = root.integer_or("first_k_dense_replace", 0, 0, hf_limits.layers);
  experts.every = root.integer_or("moe_layer_freq", 1, 1, 1);
  experts.selection_bias = true;
  model.experts = experts;
  return model;
}

namespace {

// An indexer of its own in each layer.
Model with_indexer(const Table& root, Model model, std::int64_t heads) {
  const Indexer indexer{.heads = root.integer_or("index_n_heads", heads, 1, hf_limits.heads),
                        .width = root.integer_or("index_head_dim", 128, 1, hf_limits.heads),
                        .chosen = root.integer_or("index_topk", 2048, 1, hf_limits.tokens)};
  model.attention.indexer = indexer;
  if (root.sound() && model.attention.latent->query_width == 0)
    root.problem("q_lora_rank", "an indexer reads the narrow vector of queries: expected a width");
  return model;
}

}  // namespace

Model read_deepseek_v32(const Table& root) {
  return with_indexer(root, read_glm4_moe_lite(root), 64);
}

// Since 5.2 most layers take the tokens that one before them has chosen.
Model read_glm_dsa(const Table& root) {
  Model model = with_indexer(root, read_deepseek(root), 32);
  if (!root.has("first_k_dense_replace")) model.experts->first_dense = 3;
  constexpr std::string_view shared = "layers that share what one of them chose are not modelled";
  if (root.integer_or("index_topk_freq", 1, 1, hf_limits.layers) > 1)
    root.problem("index_topk_freq", shared);
  for (const std::string_view key : {"indexer_types", "index_topk_pattern"})
    if (root.has(key)) root.problem(key, shared);
  return model;
}

// GLM-4.7-Flash: attention of DeepSeek, the first layer without experts unless the file says more.
Model read_glm4_moe_lite(const Table& root) {
  Model model = read_deepseek(root);
  if (!root.has("first_k_dense_replace")) model.experts->first_dense = 1;
  return model;
}

// The text tower alone. Layers without rotary positions see everything; the others see the chunk
// that they are in.
Model read_llama4(const Table& root) {
  const Table text = root.has("text_config") ? root.table("text_config") : root;
  Model model = read_decoder(text);
  set_bias(model, text.flag_or("attention_bias", false));
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
  return model;
}

Model read_bailing_moe(const Table& root) {
  return read_bailing(root, false);
}

Model read_bailing_moe_v2(const Table& root) {
  return read_bailing(root, true);
}

// The first DeepSeek with experts: attention as in Llama.
Model read_deepseek_v1(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.experts =
      read_experts(root, {"n_routed_experts", "moe_intermediate_size", "n_shared_experts", ""});
  model.experts->first_dense = root.integer_or("first_k_dense_replace", 0, 0, hf_limits.layers);
  root.integer_or("moe_layer_freq", 1, 1, 1);
  return model;
}

Model read_phimoe(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.norm_bias = true;
  model.head_bias = root.flag_or("lm_head_bias", false);
  model.experts = read_experts(root, {"num_local_experts", "intermediate_size", "", ""});
  read_window(root, model);
  return model;
}

// Its experts are rows of three matrices, which its code takes apart once: no expert's gradient is
// as large as all of them, as it is where each is cut out of a stack.
Model read_dbrx(const Table& root) {
  Model model;
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
  return model;
}

namespace {

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

// Hunyuan-A13B: a shared expert as wide as a dense layer would be.
Model read_hunyuan_moe(const Table& root) {
  Model model = read_decoder(root);
  if (root.has("attention_head_dim"))
    model.attention.head_dim = root.integer("attention_head_dim", 1, hf_limits.heads);
  set_bias(model, root.flag_or("attention_bias", false));
  if (root.flag_or("use_qk_norm", true)) model.attention.qk_norm = Attention::QkNorm::per_head;
  for (const char* key : {"use_cla", "use_mla"})
    if (root.flag_or(key, false)) root.problem(key, "is not modelled");
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
  return model;
}

}  // namespace stepsim
