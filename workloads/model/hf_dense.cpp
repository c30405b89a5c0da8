#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {

Model read_llama(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.feed_forward.bias = root.flag_or("mlp_bias", false);
  return model;
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

Model read_gemma3_tower(const Table& root) {
  return read_text_tower(root, read_gemma3);
}

Model read_mistral_tower(const Table& root) {
  return read_text_tower(root, read_mistral);
}

Model read_qwen2_tower(const Table& root) {
  return read_text_tower(root, read_qwen2);
}

Model read_qwen3_tower(const Table& root) {
  return read_text_tower(root, read_qwen3);
}

}  // namespace stepsim
