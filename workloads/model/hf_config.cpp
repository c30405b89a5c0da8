#include "workloads/model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "workloads/model/hf_families.hpp"

namespace stepsim {
namespace {

constexpr std::array known{
    Architecture{"LlamaForCausalLM", "Llama 2 and 3, TinyLlama", read_llama},
    Architecture{"MistralForCausalLM", "Llama with a sliding window", read_mistral},
    Architecture{"InternLMForCausalLM", "Llama with biases in attention", read_internlm},
    Architecture{"Qwen2ForCausalLM", "Qwen 2 and 2.5: biases in q, k, v", read_qwen2},
    Architecture{"Qwen3ForCausalLM", "norms on each query and key head", read_qwen3},
    Architecture{"Phi3ForCausalLM", "Phi-3, Phi-4: q, k, v and gate, up fused", read_phi3},
    Architecture{"Olmo2ForCausalLM", "norms behind, and across all heads", read_olmo2},
    Architecture{"Olmo3ForCausalLM", "OLMo 2 with a window in 3 of 4 layers", read_olmo3},
    Architecture{"MPTForCausalLM", "GPT with alibi or learned positions", read_mpt},
    Architecture{"GPT2LMHeadModel", "GPT with learned positions and biases", read_gpt2},
    Architecture{"MixtralForCausalLM", "experts in all layers", read_mixtral},
    Architecture{"Qwen2MoeForCausalLM", "with a gated shared expert", read_qwen2_moe},
    Architecture{"Qwen3MoeForCausalLM", "no shared expert", read_qwen3_moe},
    Architecture{"Glm4MoeForCausalLM", "GLM-4.5: dense first layers", read_glm4_moe},
    Architecture{"DeepseekV3ForCausalLM", "DeepSeek V3, Moonlight: latent attention",
                 read_deepseek},
    Architecture{"BailingMoeForCausalLM", "Ling and Ring, first generation", read_bailing_moe},
    Architecture{"BailingMoeV2ForCausalLM", "Ling and Ring 2.0", read_bailing_moe_v2},
    Architecture{"Llama4ForConditionalGeneration", "Llama 4, its text tower", read_llama4},
    Architecture{"Llama4ForCausalLM", "the text tower alone", read_llama4},
    Architecture{"GptOssForCausalLM", "biased experts, attention sinks", read_gpt_oss},
};

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Architecture& architecture : known) names.emplace_back(architecture.name);
  return names;
}

const Architecture* find_architecture(const Table& root) {
  if (!root.has("architectures")) {
    root.problem("architectures", fmt::format("is missing; known: {}", one_of(known_names())));
    return nullptr;
  }
  const std::vector<std::string> named = root.texts("architectures");
  if (named.size() == 1)
    for (const Architecture& architecture : known)
      if (architecture.name == named.front()) return &architecture;
  if (named.size() == 1)
    root.problem("architectures",
                 fmt::format("unknown architecture \"{}\"{}; known: {}", named.front(),
                             did_you_mean(named.front(), known_names()), one_of(known_names())));
  else
    root.problem("architectures", fmt::format("expected one name, found {}", named.size()));
  return nullptr;
}

}  // namespace

std::span<const Architecture> architectures() {
  return known;
}

Model read_hf_config(const Table& root, std::string name) {
  Model model;
  if (const Architecture* architecture = find_architecture(root)) {
    model = architecture->read(root);
    model.architecture = architecture->name;
  }
  model.name = std::move(name);
  if (root.is_mapping("quantization_config")) {
    const Table stored = root.table("quantization_config");
    for (const std::string& key : stored.keys()) stored.has(key);
    model.stored_as = stored.text_or("quant_method", "fewer bits");
  }
  // Widths that no layer has would only mislead.
  const std::int64_t with_experts = expert_layers(model);
  if (with_experts == 0) model.experts.reset();
  if (with_experts == model.layers) model.feed_forward.width = 0;
  return model;
}

std::optional<std::string> experts_said(const Document& file, const std::string& path) {
  for (const std::string_view part : {"", ".text_config"})
    for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"})
      if (auto count = file.peek(fmt::format("{}{}.{}", path, part, key)); count && count != "0")
        return count;
  return {};
}

Model load_hf_config(const std::string& path) {
  std::filesystem::path file(path);
  std::error_code failed;
  if (std::filesystem::is_directory(file, failed)) file /= "config.json";
  const bool usual = file.filename() == "config.json";
  const auto folder = std::filesystem::absolute(file, failed).lexically_normal().parent_path();
  const Document document = read_document(file.string());
  Model model = read_hf_config(document.root(), (usual ? folder.filename() : file.stem()).string());
  document.finish(Leftovers::allowed);
  return model;
}

}  // namespace stepsim
