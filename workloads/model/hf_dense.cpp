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

Model read_olmo2(const Table& root) {
  Model model = read_decoder(root);
  set_bias(model, root.flag_or("attention_bias", false));
  model.attention.qk_norm = Attention::QkNorm::full_width;
  model.norm_after = true;
  return model;
}

Model read_olmo3(const Table& root) {
  Model model = read_olmo2(root);
  model.attention.full_every = 4;
  read_window(root, model);
  return model;
}

}  // namespace stepsim
