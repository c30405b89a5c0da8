#include "workloads/model/model.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

Model catalogued(const std::string& name) {
  return load_model(source_data(), name);
}

std::vector<std::string> names_of(const std::vector<Module>& modules) {
  std::vector<std::string> names;
  for (const Module& module : modules) names.push_back(module.name);
  return names;
}

std::int64_t elements_of(const std::vector<Module>& modules) {
  std::int64_t elements = 0;
  for (const Module& module : modules)
    for (const Tensor& tensor : module.tensors) elements += tensor.elements;
  return elements;
}

std::int64_t count_named(const std::vector<Module>& modules, std::string_view part) {
  return std::count_if(modules.begin(), modules.end(), [&](const Module& module) {
    return module.name.find(part) != std::string::npos;
  });
}

struct Published {
  const char* name;
  std::int64_t elements;  // of the checkpoint, buffers included
  std::int64_t layers;
  std::int64_t tensors_per_layer;
  std::int64_t tensors_outside;
};

}  // namespace

TEST_CASE("totals are those of the published checkpoints, tensors follow the family",
          "[workloads]") {
  const auto model = GENERATE(
      Published{"llama-2-7b", 6738415616, 32, 9, 3},
      Published{"llama-3.1-8b", 8030261248, 32, 9, 3},
      Published{"llama-3.3-70b", 70553706496, 80, 9, 3},
      Published{"llama-3.2-3b", 3212749824, 28, 9, 2},  // tied: no head of its own
      Published{"mistral-7b", 7241732096, 32, 9, 3}, Published{"qwen2.5-7b", 7615616512, 28, 12, 3},
      Published{"qwen3-8b", 8190735360, 36, 11, 3},
      Published{"qwen3-30b-a3b", 30532122624, 48, 9 + 3 * 128, 3},
      Published{"qwen3-235b-a22b", 235093634560, 94, 9 + 3 * 128, 3},
      Published{"mixtral-8x7b", 46702792704, 32, 7 + 3 * 8, 3},
      Published{"olmo-2-7b", 7298617344, 32, 11, 3},
      Published{"olmo-3-32b", 32233522176, 64, 11, 3}, Published{"mpt-7b", 6649286656, 32, 6, 2},
      Published{"phi-3-mini", 3821079552, 32, 6, 3}, Published{"phi-4", 14659507200, 40, 6, 3},
      Published{"llama-4-scout", 107769861120, 48, 12, 3},
      Published{"gpt-oss-120b", 116829156672, 36, 17, 3});
  CAPTURE(model.name);
  const ParameterCount count = count_parameters(catalogued(model.name));
  CHECK(count.total() == model.elements);
  CHECK(count.tensors == model.layers * model.tensors_per_layer + model.tensors_outside);
  CHECK(count.buffers == 0);
}

TEST_CASE("layers without experts and correction buffers are counted as such", "[workloads]") {
  struct Mixed {
    const char* name;
    std::int64_t elements, dense_layers, expert_layers, experts, outside_experts;
  };
  // GLM-4.5 Air: biases on q, k, v; GLM-4.5: norms on them too; Ring: q, k, v in one matrix.
  const auto mixed = GENERATE(Mixed{"glm-4.5-air", 106852251264, 1, 45, 128, 9},
                              Mixed{"glm-4.5", 352797829024, 3, 89, 160, 11},
                              Mixed{"ring-mini-2.0", 16255643392, 1, 19, 256, 6},
                              // Latent attention: two matrices and a norm for queries, as many for
                              // keys and values; 671B without the token-prediction layer.
                              Mixed{"deepseek-v3", 671026419200, 3, 58, 256, 9});
  CAPTURE(mixed.name);
  const Model model = catalogued(mixed.name);
  const ParameterCount count = count_parameters(model);
  CHECK(expert_layers(model) == mixed.expert_layers);
  CHECK(count.buffers == mixed.expert_layers * mixed.experts);
  CHECK(count.total() + count.buffers == mixed.elements);
  const std::int64_t router_and_shared = 1 + 3;
  CHECK(count.tensors ==
        3 + mixed.dense_layers * (mixed.outside_experts + 3) +
            mixed.expert_layers * (mixed.outside_experts + router_and_shared + 3 * mixed.experts));
}

TEST_CASE("every other layer of Maverick has experts", "[workloads]") {
  const Model model = catalogued("llama-4-maverick");
  CHECK_FALSE(has_experts(model, 0));
  CHECK(has_experts(model, 1));
  CHECK(has_experts(model, 47));
  CHECK(expert_layers(model) == 24);
  CHECK(count_parameters(model).total() == 400711848960);
}

TEST_CASE("classes add up from the widths", "[workloads]") {
  const std::int64_t layers = 48, hidden = 2048, heads = 32, kv_heads = 4, head = 128;
  const std::int64_t experts = 128, width = 768, vocabulary = 151936;
  const ParameterCount count = count_parameters(catalogued("qwen3-30b-a3b"));
  CHECK(count.of(TensorClass::expert) == layers * experts * 3 * hidden * width);
  CHECK(count.of(TensorClass::embedding) == 2 * vocabulary * hidden);
  CHECK(count.of(TensorClass::norm) == layers * (2 * hidden + 2 * head) + hidden);
  CHECK(count.of(TensorClass::dense) ==
        layers * (hidden * head * (2 * heads + 2 * kv_heads) + hidden * experts));
}

TEST_CASE("a token meets its own experts and everything else", "[workloads]") {
  CHECK(active_parameters(catalogued("qwen3-30b-a3b")) == 3353032704);
  CHECK(active_parameters(catalogued("mixtral-8x7b")) == 12879925248);
  const Model ring = catalogued("ring-mini-2.0");
  CHECK(active_parameters(ring) + count_parameters(ring).buffers == 1432973056);
  const Model dense = catalogued("llama-3.1-8b");
  CHECK(active_parameters(dense) == count_parameters(dense).total());
}

TEST_CASE("an unfused expert is five modules, the rest of its layer twelve", "[workloads]") {
  const Model model = catalogued("qwen3-30b-a3b");
  const std::vector<Module> modules = layer_modules(model, 0);
  CHECK(modules.size() == 128 * 5 + 12);
  CHECK(count_named(modules, "mlp.experts.17.") == 4);  // three matrices and the activation
  CHECK(count_parameters(model).tensors == 393 * 48 + 3);
}

TEST_CASE("fused experts hold the same elements in two tensors", "[workloads]") {
  const Model loose = catalogued("qwen3-30b-a3b");
  Model fused = loose;
  fused.experts->fused = true;
  CHECK(layer_modules(fused, 0).size() == 12 + 2);
  CHECK(count_parameters(fused).tensors == 531);
  CHECK(count_parameters(fused).elements == count_parameters(loose).elements);
  CHECK(active_parameters(fused) == active_parameters(loose));
}

TEST_CASE("modules come in calling order, the norms where the family has them", "[workloads]") {
  using Names = std::vector<std::string>;
  CHECK(names_of(layer_modules(catalogued("llama-3.1-8b"), 0)) ==
        Names{"layer", "input_layernorm", "self_attn", "self_attn.q_proj", "self_attn.k_proj",
              "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm", "mlp",
              "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"});
  CHECK(names_of(layer_modules(catalogued("olmo-2-7b"), 0)) ==
        Names{"layer", "self_attn", "self_attn.q_proj", "self_attn.q_norm", "self_attn.k_proj",
              "self_attn.k_norm", "self_attn.v_proj", "self_attn.o_proj",
              "post_attention_layernorm", "mlp", "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj",
              "mlp.down_proj", "post_feedforward_layernorm"});
  CHECK(names_of(layer_modules(catalogued("mpt-7b"), 0)) ==
        Names{"layer", "input_layernorm", "self_attn", "self_attn.qkv_proj", "self_attn.o_proj",
              "post_attention_layernorm", "mlp", "mlp.up_proj", "mlp.act_fn", "mlp.down_proj"});
}

TEST_CASE("a tied head is called and has no tensor of its own", "[workloads]") {
  const std::vector<Module> tied = outer_modules(catalogued("llama-3.2-3b"));
  CHECK(tied.back().name == "lm_head");
  CHECK(tied.back().tensors.empty());
  CHECK(elements_of(outer_modules(catalogued("llama-3.1-8b"))) == 2 * 128256 * 4096 + 4096);
}

TEST_CASE("one layer and the embeddings of the models that GRPO trains", "[workloads]") {
  struct Part {
    const char* name;
    std::int64_t layer, embedding, tensors;
  };
  const auto part = GENERATE(
      Part{"olmo-2-32b", 487604224, 513802240, 707}, Part{"olmo-3-32b", 487604224, 513423360, 707},
      Part{"qwen2.5-32b", 487605248, 778567680, 771}, Part{"qwen3-32b", 487598336, 777912320, 707},
      Part{"olmo-3-7b", 202391552, 410738688, 355}, Part{"qwen2.5-7b", 233057792, 544997376, 339});
  CAPTURE(part.name);
  const Model model = catalogued(part.name);
  CHECK(elements_of(layer_modules(model, 0)) == part.layer);
  CHECK(count_parameters(model).of(TensorClass::embedding) == 2 * part.embedding);
  CHECK(count_parameters(model).tensors == part.tensors);
}

TEST_CASE("a window binds three layers of four in Olmo 3, all in Mistral, none in Llama 3",
          "[workloads]") {
  const Model olmo = catalogued("olmo-3-32b");
  for (std::int64_t layer = 0; layer < olmo.layers; ++layer)
    CHECK(window_of(olmo, layer) == (layer % 4 == 3 ? 0 : 4096));
  CHECK(window_of(catalogued("mistral-7b"), 31) == 4096);
  CHECK(window_of(catalogued("llama-3.1-8b"), 0) == 0);
}
