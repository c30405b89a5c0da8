#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {

// The first Qwen, whose intermediate_size is that of gate and up together.
void finish_qwen1(const Table& root, Model& model) {
  if (model.feed_forward.width % 2 != 0)
    root.problem("intermediate_size", "expected an even number: gate and up together");
  model.feed_forward.width /= 2;
}

// Those of 13B have no rotary positions, nor a length that positions end at.
void finish_baichuan(const Table& root, Model& model) {
  if (root.has("max_position_embeddings")) return;
  model.positions = Positions::alibi;
  model.longest_sequence = root.integer_or("model_max_length", 4096, 1, hf_limits.tokens);
}

// ChatGLM 2 and 3, GLM-4 by their own code.
void finish_chatglm(const Table& root, Model& model) {
  Attention& a = model.attention;
  a.head_dim = root.integer("kv_channels", 1, hf_limits.heads);
  if (root.flag_or("multi_query_attention", false))
    a.kv_heads = root.integer("multi_query_group_num", 1, hf_limits.heads);
  if (root.sound() && a.heads % a.kv_heads != 0)
    root.problem("multi_query_group_num", "must divide the heads");
  a.qkv_bias = root.flag_or("add_qkv_bias", a.qkv_bias) || a.qkv_bias;
  model.norm_bias = !root.flag_or("rmsnorm", true);
  a.rotary = a.head_dim / 2;
}

}  // namespace stepsim
