#include "workloads/model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>

#include "sim/base/letters.hpp"
#include "workloads/model/hf_cache.hpp"
#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

// Code reads what rules cannot say of a family.
struct FamilyCode {
  std::string_view name;
  void (*finish)(const Table& root, Model& model);
};
constexpr std::array family_codes{FamilyCode{"baichuan", finish_baichuan},
                                  FamilyCode{"bert", finish_bert},
                                  FamilyCode{"bloom", finish_bloom},
                                  FamilyCode{"chatglm", finish_chatglm},
                                  FamilyCode{"dbrx", finish_dbrx},
                                  FamilyCode{"deberta", finish_deberta},
                                  FamilyCode{"deepseek_v32", finish_deepseek_v32},
                                  FamilyCode{"distilbert", finish_distilbert},
                                  FamilyCode{"falcon", finish_falcon},
                                  FamilyCode{"falcon_h1", finish_falcon_h1},
                                  FamilyCode{"glm_dsa", finish_glm_dsa},
                                  FamilyCode{"gpt2", finish_gpt2},
                                  FamilyCode{"gpt_bigcode", finish_gpt_bigcode},
                                  FamilyCode{"gpt_neo", finish_gpt_neo},
                                  FamilyCode{"gptj", finish_gptj},
                                  FamilyCode{"granite_hybrid", finish_granite_hybrid},
                                  FamilyCode{"hunyuan_moe", finish_hunyuan_moe},
                                  FamilyCode{"jamba", finish_jamba},
                                  FamilyCode{"lfm2", finish_lfm2},
                                  FamilyCode{"lfm2_moe", finish_lfm2_moe},
                                  FamilyCode{"llama4", finish_llama4},
                                  FamilyCode{"modernbert", finish_modernbert},
                                  FamilyCode{"mpt", finish_mpt},
                                  FamilyCode{"mpt_of_transformers", finish_mpt_of_transformers},
                                  FamilyCode{"nemotron_h", finish_nemotron_h},
                                  FamilyCode{"opt", finish_opt},
                                  FamilyCode{"qwen1", finish_qwen1},
                                  FamilyCode{"qwen3_5", finish_qwen3_5},
                                  FamilyCode{"qwen3_next", finish_qwen3_next},
                                  FamilyCode{"roberta", finish_roberta},
                                  FamilyCode{"qwen3_5_moe", finish_qwen3_5}};

// The family of a tower that its own block names.
constexpr std::string_view named_tower = "named_tower";

Model read_as(const Table& root, std::string_view family) {
  std::optional<Model> by_rules = read_family(root, family);
  const auto code = std::ranges::find(family_codes, family, &FamilyCode::name);
  if (!by_rules && code == family_codes.end())
    throw std::logic_error(fmt::format("nothing reads the family {}", family));
  Model model = by_rules.value_or(Model());
  if (code != family_codes.end()) code->finish(root, model);
  return model;
}

// Reads a class, or the text tower of one that has others beside it.
Model read_class(const Table& root, const Architecture& architecture) {
  const std::string_view family = architecture.family;
  if (!architecture.tower) return read_as(root, family);
  if (!root.has("text_config")) return read_as(root, family);
  const Table text = root.table("text_config");
  Model model = read_as(text, family);
  if (!text.has("tie_word_embeddings") && root.has("tie_word_embeddings"))
    model.tied_embeddings = root.flag_or("tie_word_embeddings", false);
  return model;
}

// A name that differs in its small and capital letters only is misspelt; one that is merely near
// is another model, whose reader would count wrongly.
std::string other_case(std::string_view name) {
  const auto same = [](char a, char b) { return small_letter(a) == small_letter(b); };
  for (const Architecture& each : architectures())
    if (std::equal(name.begin(), name.end(), each.name.begin(), each.name.end(), same))
      return fmt::format(" (did you mean \"{}\"?)", each.name);
  return "";
}

// These are known, and this is why they are not read.
struct Unread {
  std::string_view name, why;
};
constexpr std::string_view four_streams =
    "four sums that layers add to, and a table for each layer, are not modelled";
constexpr std::string_view heads_differ = "heads whose width differs by layer are not modelled";
constexpr std::array unread{
    Unread{"Gemma3nForConditionalGeneration", four_streams},
    Unread{"Gemma3nForCausalLM", four_streams},
    Unread{"Gemma4ForConditionalGeneration", heads_differ},
    Unread{"Gemma4ForCausalLM", heads_differ},
    Unread{"MllamaForConditionalGeneration",
           "layers that attend to images are not modelled; llama-3.2-11b-vision and "
           "llama-3.2-90b-vision of the catalogue have the text tower"},
    Unread{"MllamaForCausalLM", "layers that attend to images are not modelled"},
    Unread{"DeepseekV4ForCausalLM", "attention to summaries of tokens is not modelled"}};

std::string no_reader(std::string_view name) {
  for (const Unread& each : unread)
    if (each.name == name) return fmt::format("no reader for \"{}\": {}", name, each.why);
  return fmt::format(
      "no reader for \"{}\"{}; `stepsim list architectures` names those that are known", name,
      other_case(name));
}

const Architecture* find_named(std::string_view name) {
  for (const Architecture& each : architectures())
    if (each.name == name) return &each;
  return nullptr;
}

// Classes of a family with another head than words end so.
struct OtherHead {
  std::string_view ending;
  ModelHead::Makes makes;
};
constexpr std::array other_heads{
    OtherHead{"ForSequenceClassification", ModelHead::Makes::labels},
    OtherHead{"ForTokenClassification", ModelHead::Makes::labels_of_tokens},
    OtherHead{"Model", ModelHead::Makes::nothing}};

const OtherHead* other_head_of(std::string_view name) {
  if (find_named(name) != nullptr) return nullptr;
  const auto head = std::ranges::find_if(
      other_heads, [&](const OtherHead& each) { return name.ends_with(each.ending); });
  return head == other_heads.end() ? nullptr : &*head;
}

// Finds a class, or one of the same family whose head makes words.
const Architecture* find_class(const std::string& name) {
  const OtherHead* head = other_head_of(name);
  if (head == nullptr) return find_named(name);
  const std::string family = name.substr(0, name.size() - head->ending.size());
  const Architecture* decoder = find_named(family + "ForCausalLM");
  return decoder != nullptr ? decoder : find_named(family + "ForMaskedLM");
}

// Puts the head of the class; how many labels it has is said by their number or by their names.
void read_head(const Table& root, std::string_view name, Model& model) {
  const OtherHead* head = other_head_of(name);
  if (head == nullptr) return;
  std::int64_t labels = root.integer_or("num_labels", 2, 1, 1'000'000);
  if (root.is_mapping("id2label"))
    labels = static_cast<std::int64_t>(root.table("id2label").keys().size());
  model.head = {.makes = head->makes,
                .labels = labels,
                .bias = model.encoder || head->makes == ModelHead::Makes::labels_of_tokens};
  if (!model.encoder) model.tied_embeddings = false;
}

const Architecture* find_architecture(const Table& root) {
  if (root.has("_class_name")) {
    root.problem("_class_name", "names a class of diffusers, whose models are not modelled");
    return nullptr;
  }
  if (!root.has("architectures")) {
    root.problem("architectures",
                 "is missing; `stepsim list architectures` names those that are known");
    return nullptr;
  }
  const std::vector<std::string> named = root.texts("architectures");
  if (named.size() == 1)
    if (const Architecture* architecture = find_class(named.front())) return architecture;
  if (named.size() == 1)
    root.problem("architectures", no_reader(named.front()));
  else
    root.problem("architectures", fmt::format("expected one name, found {}", named.size()));
  return nullptr;
}

// A text tower that names no class of its own is called so.
struct TypeName {
  std::string_view type, architecture;
};
constexpr std::array type_names{
    TypeName{"llama", "LlamaForCausalLM"},        TypeName{"mistral", "MistralForCausalLM"},
    TypeName{"qwen2", "Qwen2ForCausalLM"},        TypeName{"qwen3", "Qwen3ForCausalLM"},
    TypeName{"qwen3_moe", "Qwen3MoeForCausalLM"}, TypeName{"gemma", "GemmaForCausalLM"},
    TypeName{"gemma2", "Gemma2ForCausalLM"},      TypeName{"gemma3_text", "Gemma3ForCausalLM"},
    TypeName{"phi3", "Phi3ForCausalLM"},          TypeName{"gpt_oss", "GptOssForCausalLM"}};

// A tower beside which something sees or hears: its block names its class, or its type.
Model read_named_tower(const Table& root) {
  for (const std::string_view block : {"text_config", "llm_config", "language_config"}) {
    if (!root.is_mapping(block)) continue;
    const Table text = root.table(block);
    std::string name;
    if (text.has("architectures") && text.texts("architectures").size() == 1)
      name = text.texts("architectures").front();
    const std::string type = text.text_or("model_type", "llama");
    for (const TypeName& each : type_names)
      if (name.empty() && each.type == type) name = each.architecture;
    const Architecture* tower = find_named(name);
    if (tower != nullptr && tower->family != named_tower) {
      // Files of these two say what differs from the family's first, its 7B.
      if (name == "LlamaForCausalLM" || name == "MistralForCausalLM")
        return read_as(text, tower->family + "_tower");
      return read_class(text, *tower);
    }
    text.problem(text.has("architectures") ? "architectures" : "model_type",
                 fmt::format("no reader for \"{}\"; `stepsim list architectures` names those that "
                             "are known",
                             name.empty() ? type : name));
    return {};
  }
  root.problem("text_config", "is missing: what the text tower is made of");
  return {};
}

// These keys stand in every config.json: a step takes as long and as much memory whatever they say.
constexpr auto without_effect = std::to_array<const char*>({"model_type",
                                                            "rope_theta",
                                                            "rope_scaling",
                                                            "rope_parameters",
                                                            "torch_dtype",
                                                            "dtype",
                                                            "rms_norm_eps",
                                                            "layer_norm_eps",
                                                            "layer_norm_epsilon",
                                                            "norm_eps",
                                                            "hidden_act",
                                                            "hidden_activation",
                                                            "bos_token_id",
                                                            "eos_token_id",
                                                            "pad_token_id",
                                                            "transformers_version",
                                                            "use_cache",
                                                            "initializer_range",
                                                            "attention_dropout",
                                                            "attention_probs_dropout_prob",
                                                            "hidden_dropout_prob",
                                                            "id2label",
                                                            "label2id",
                                                            "num_labels",
                                                            "hidden_dropout",
                                                            "pretraining_tp",
                                                            "auto_map",
                                                            "_name_or_path",
                                                            "resid_pdrop",
                                                            "embd_pdrop",
                                                            "attn_pdrop",
                                                            "original_max_position_embeddings",
                                                            "router_aux_loss_coef",
                                                            "output_router_logits"});

}  // namespace

Model read_hf_config(const Table& root, std::string name) {
  Model model;
  if (const Architecture* architecture = find_architecture(root)) {
    model = architecture->family == named_tower ? read_named_tower(root)
                                                : read_class(root, *architecture);
    model.architecture = architecture->name;
    read_head(root, root.texts("architectures").front(), model);
    model.tower = read_tower(root, model.hidden);
  }
  model.name = std::move(name);
  for (const char* key : without_effect) root.has(key);
  if (root.is_mapping("quantization_config")) {
    const Table stored = root.table("quantization_config");
    for (const std::string& key : stored.keys()) stored.has(key);
    model.stored_as = stored.text_or("quant_method", "fewer bits");
  }
  // Widths that no layer has would only mislead.
  if (expert_layers(model) == 0) model.experts.reset();
  if (feed_forward_layers(model) == 0) model.feed_forward.width = 0;
  if (mixer_layers(model) == 0) model.mixer.reset();
  return model;
}

std::optional<std::string> experts_said(const Document& file, const std::string& path) {
  for (const std::string_view part : {"", ".text_config"})
    for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"})
      if (auto count = file.peek(fmt::format("{}{}.{}", path, part, key));
          count && count != "0" && count != "1")  // one is no choice: Jamba without experts
        return count;
  return {};
}

std::string config_file(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return path;
  return (std::filesystem::path(path) / "config.json").string();
}

Model load_hf_config(const std::string& path) {
  const std::filesystem::path file(config_file(path));
  std::error_code failed;
  const bool usual = file.filename() == "config.json";
  const auto folder = std::filesystem::absolute(file, failed).lexically_normal().parent_path();
  const Document document = read_document(file.string());
  const std::string own = (usual ? folder.filename() : file.stem()).string();
  Model model = read_hf_config(document.root(), name_of_snapshot(folder).value_or(own));
  document.finish(Leftovers::allowed);
  return model;
}

}  // namespace stepsim
