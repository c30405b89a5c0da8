#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {

namespace {

Model read_llama_with(const Table& root, const DecoderKeys& keys) {
  Model model = read_decoder(root, keys);
  set_bias(model, root.flag_or("attention_bias", false));
  model.feed_forward.bias = root.flag_or("mlp_bias", false);
  return model;
}

}  // namespace

Model read_llama(const Table& root) {
  return read_llama_with(root, {});
}

// Reads the text tower of a model that sees, whose file says only what differs from Llama 7B.
Model read_llama_tower(const Table& root) {
  return read_llama_with(root, {.layers = 32,
                                .hidden = 4096,
                                .feed_forward = 11008,
                                .vocabulary = 32000,
                                .positions = 2048,
                                .heads = {.heads = 32}});
}

Model read_internlm(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("bias", true));
  return model;
}

Model read_mistral(const Table& root) {
  Model model = read_decoder(root);
  read_window(root, model);
  return model;
}

// Does the same from Mistral 7B.
Model read_mistral_first(const Table& root) {
  Model model = read_decoder(root, {.layers = 32,
                                    .hidden = 4096,
                                    .feed_forward = 14336,
                                    .vocabulary = 32000,
                                    .positions = 131072,
                                    .heads = {.heads = 32, .kv_heads = 8}});
  read_window(root, model);
  return model;
}

Model read_qwen2(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = true;
  read_qwen_window(root, model);
  return model;
}

Model read_qwen3(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::per_head;
  if (!root.has("head_dim")) model.attention.head_dim = 128;  // this family's default
  read_qwen_window(root, model);
  return model;
}

Model read_phi3(const Table& root) {
  Model model = read_decoder(root);
  model.attention.fused_qkv = true;
  model.feed_forward.fused_gate_up = true;
  read_window(root, model);
  return model;
}

// InternLM2 stores queries, keys and values as one matrix.
Model read_internlm2(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("bias", false));
  model.attention.fused_qkv = true;
  return model;
}

// GLM-4 9B: gate and up as one matrix, half of a head with positions.
Model read_glm(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = root.flag_or("attention_bias", true);
  model.feed_forward.fused_gate_up = true;
  read_rotary(root, "partial_rotary_factor", 0.5, model);
  return model;
}

Model read_glm4(const Table& root) {
  Model model = read_glm(root);
  model.norms = Norms::both;
  return model;
}

Model read_seed_oss(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = root.flag_or("attention_bias", true);
  model.attention.output_bias = root.flag_or("attention_out_bias", false);
  model.feed_forward.bias = root.flag_or("mlp_bias", false);
  return model;
}

// Its activation, xIELU, costs what others' do; the two numbers that each learns are not counted.
Model read_apertus(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::per_head;
  model.feed_forward.gated = false;
  return model;
}

Model read_exaone4(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qk_norm = Attention::QkNorm::per_head;
  model.norms = Norms::behind;
  model.attention.full_every = 4;
  read_window(root, model);
  return model;
}

// OLMo 1: norms have nothing to learn. What it clips costs next to nothing.
Model read_olmo(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.norm_weights = false;
  return model;
}

Model read_olmo2(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::full_width;
  model.norms = Norms::behind;
  return model;
}

Model read_olmo3(const Table& root) {
  Model model = read_olmo2(root);
  model.attention.full_every = 4;
  read_window(root, model);
  return model;
}

// Embeddings are scaled and activations are GELU, which cost what other families' do.
Model read_gemma(const Table& root) {
  Model model = read_decoder(root, {.tied = true, .heads = {.width = 256}});
  set_bias(model, root.flag_or("attention_bias", false));
  return model;
}

Model read_gemma2(const Table& root) {
  Model model = read_gemma(root);
  model.norms = Norms::both;
  model.caps_logits = !root.has("final_logit_softcapping") ||
                      root.number_or("final_logit_softcapping", 30, 0, 1e6) > 0;
  model.attention.full_every = 2;
  model.attention.sliding_window = root.integer_or("sliding_window", 4096, 0, hf_limits.tokens);
  read_layer_types(root, model);
  return model;
}

// Its files say only what is different from the smallest one.
Model read_gemma3(const Table& root) {
  Model model = read_decoder(root, {.tied = true,
                                    .layers = 26,
                                    .hidden = 2304,
                                    .feed_forward = 9216,
                                    .vocabulary = 262208,
                                    .positions = 131072,
                                    .heads = {.heads = 8, .kv_heads = 4, .width = 256}});
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::per_head;
  model.norms = Norms::both;
  model.attention.sliding_window = root.integer_or("sliding_window", 4096, 0, hf_limits.tokens);
  const std::string_view pattern =
      root.has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern";
  model.attention.full_every = root.integer_or(pattern, 6, 1, hf_limits.layers);
  read_layer_types(root, model);
  return model;
}

// Command R: attention and feed-forward read the result of one norm without bias.
Model read_cohere(const Table& root) {
  Model model = read_decoder(root, {.tied = true});
  set_bias(model, root.flag_or("attention_bias", false));
  model.norms = Norms::once;
  if (root.flag_or("use_qk_norm", false)) model.attention.qk_norm = Attention::QkNorm::full_width;
  return model;
}

Model read_cohere2(const Table& root) {
  Model model = read_cohere(root);
  model.attention.sliding_window = root.integer_or("sliding_window", 4096, 0, hf_limits.tokens);
  model.attention.full_every = root.integer_or("sliding_window_pattern", 4, 1, hf_limits.layers);
  read_layer_types(root, model);
  return model;
}

Model read_stablelm(const Table& root) {
  Model model = read_decoder(root);
  model.attention.qkv_bias = root.flag_or("use_qkv_bias", false);
  model.norm_bias = true;
  if (root.flag_or("qk_layernorm", false)) model.attention.qk_norm = Attention::QkNorm::full_width;
  if (root.flag_or("use_parallel_residual", false)) model.norms = Norms::once;
  read_rotary(root, "partial_rotary_factor", 0.25, model);
  return model;
}

// The first Qwen, whose intermediate_size is that of gate and up together.
Model read_qwen1(const Table& root) {
  Model model = read_decoder(root, {.positions = 32768});
  if (model.feed_forward.width % 2 != 0)
    root.problem("intermediate_size", "expected an even number: gate and up together");
  model.feed_forward.width /= 2;
  model.attention.fused_qkv = true;
  model.attention.qkv_bias = true;
  return model;
}

// Reads a Baichuan. Those of 13B have no rotary positions, nor a length that positions end at.
Model read_baichuan(const Table& root) {
  Model model = read_decoder(root, {.positions = 4096});
  if (!root.has("max_position_embeddings")) {
    model.positions = Positions::alibi;
    model.longest_sequence = root.integer_or("model_max_length", 4096, 1, hf_limits.tokens);
  }
  model.attention.fused_qkv = true;
  return model;
}

// ChatGLM 2 and 3, GLM-4 by their own code.
Model read_chatglm(const Table& root) {
  Model model = read_decoder(root, {.width = "ffn_hidden_size",
                                    .depth = "num_layers",
                                    .words = "padded_vocab_size",
                                    .reach = "seq_length"});
  model.feed_forward.fused_gate_up = true;
  Attention& a = model.attention;
  a.head_dim = root.integer("kv_channels", 1, hf_limits.heads);
  if (root.flag_or("multi_query_attention", false))
    a.kv_heads = root.integer("multi_query_group_num", 1, hf_limits.heads);
  if (root.sound() && a.heads % a.kv_heads != 0)
    root.problem("multi_query_group_num", "must divide the heads");
  a.fused_qkv = true;
  const bool bias = root.flag_or("add_bias_linear", false);
  set_bias(model, bias);
  a.qkv_bias = root.flag_or("add_qkv_bias", bias) || bias;
  model.feed_forward.bias = bias;
  model.norm_bias = !root.flag_or("rmsnorm", true);
  a.rotary = a.head_dim / 2;
  return model;
}

Model read_exaone3(const Table& root) {
  return read_decoder(root, {.depth = "num_layers"});
}

// MiniCPM scales what Llama does not; Ernie 4.5 without experts says what it has.
Model read_minicpm(const Table& root) {
  Model model = read_decoder(root, {.tied = true});
  set_bias(model, root.flag_or("attention_bias", false));
  if (root.has("sparse_config"))
    root.problem("sparse_config", "attention to chosen blocks is not modelled");
  return model;
}

// Attention of DeepSeek, feed-forward of Llama.
Model read_minicpm3(const Table& root) {
  Model model = read_decoder(root, {.tied = true, .heads = {.width = 1}});  // it is set below
  set_bias(model, root.flag_or("attention_bias", false));
  read_latent(root, model, model.hidden / model.attention.heads);
  return model;
}

Model read_ernie(const Table& root) {
  Model model = read_decoder(root, {.tied = true});
  const bool bias = root.flag_or("use_bias", false);
  set_bias(model, bias);
  model.feed_forward.bias = bias;
  return model;
}

// Nemotron 4 and Minitron: squares instead of a gate.
Model read_nemotron(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.feed_forward.gated = false;
  model.feed_forward.bias = root.flag_or("mlp_bias", false);
  model.norm_bias = true;
  read_rotary(root, "partial_rotary_factor", 0.5, model);
  return model;
}

}  // namespace stepsim
