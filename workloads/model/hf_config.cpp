#include "workloads/model/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/letters.hpp"
#include "workloads/model/hf_cache.hpp"
#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

Model read_named_tower(const Table& root);

// Reads the text tower of a model that has others beside it.
template <Model (*read)(const Table&)>
Model tower_of(const Table& root) {
  return read_text_tower(root, read);
}

constexpr std::array known_model_types{
    Architecture{"LlamaForCausalLM", "Llama 2 and 3, TinyLlama", read_llama},
    Architecture{"MistralForCausalLM", "Llama with a sliding window", read_mistral},
    Architecture{"InternLMForCausalLM", "Llama with biases in attention", read_internlm},
    Architecture{"InternLM2ForCausalLM", "q, k, v fused", read_internlm2},
    Architecture{"Qwen2ForCausalLM", "Qwen 2 and 2.5: biases in q, k, v", read_qwen2},
    Architecture{"Qwen3ForCausalLM", "norms on each query and key head", read_qwen3},
    Architecture{"Phi3ForCausalLM", "Phi-3, Phi-4: q, k, v and gate, up fused", read_phi3},
    Architecture{"OlmoForCausalLM", "OLMo 1: norms without weights", read_olmo},
    Architecture{"Olmo2ForCausalLM", "norms behind, and across all heads", read_olmo2},
    Architecture{"Olmo3ForCausalLM", "OLMo 2 with a window in 3 of 4 layers", read_olmo3},
    Architecture{"GemmaForCausalLM", "heads of 256, tied embeddings", read_gemma},
    Architecture{"Gemma2ForCausalLM", "four norms a layer, a window in every other", read_gemma2},
    Architecture{"SmolLM3ForCausalLM", "SmolLM3: positions in 3 of 4 layers", read_llama},
    Architecture{"Gemma3ForCausalLM", "Gemma 3: a window in 5 of 6 layers", read_gemma3},
    Architecture{"Gemma3ForConditionalGeneration", "Gemma 3, its text tower",
                 tower_of<read_gemma3>},
    Architecture{"GraniteForCausalLM", "Granite 3: Llama with multipliers", read_llama},
    Architecture{"Ministral3ForCausalLM", "Ministral 3, the text tower alone", read_mistral},
    Architecture{"Mistral3ForConditionalGeneration", "Mistral 3, its text tower",
                 tower_of<read_mistral>},
    Architecture{"Qwen2VLForConditionalGeneration", "Qwen2-VL, its text tower",
                 tower_of<read_qwen2>},
    Architecture{"Qwen2_5_VLForConditionalGeneration", "Qwen2.5-VL, its text tower",
                 tower_of<read_qwen2>},
    Architecture{"Qwen3VLForConditionalGeneration", "Qwen3-VL, its text tower",
                 tower_of<read_qwen3>},
    Architecture{"SeedOssForCausalLM", "Seed-OSS: biases in q, k, v", read_seed_oss},
    Architecture{"GlmForCausalLM", "GLM-4: gate and up fused", read_glm},
    Architecture{"Glm4ForCausalLM", "GLM-4 0414: four norms a layer", read_glm4},
    Architecture{"Exaone4ForCausalLM", "EXAONE 4: norms behind, and on heads", read_exaone4},
    Architecture{"ApertusForCausalLM", "Apertus: no gate, norms on heads", read_apertus},
    Architecture{"MPTForCausalLM", "GPT with alibi or learned positions", read_mpt},
    Architecture{"MptForCausalLM", "the same in transformers", read_mpt_of_transformers},
    Architecture{"GPT2LMHeadModel", "GPT with learned positions and biases", read_gpt2},
    Architecture{"GPTNeoXForCausalLM", "GPT-NeoX, Pythia", read_gpt_neox},
    Architecture{"Starcoder2ForCausalLM", "StarCoder2: GPT with shared keys", read_starcoder2},
    Architecture{"GPTBigCodeForCausalLM", "StarCoder: GPT-2 with one head of keys",
                 read_gpt_bigcode},
    Architecture{"GPTNeoForCausalLM", "GPT-Neo", read_gpt_neo},
    Architecture{"GPTJForCausalLM", "GPT-J: one norm for attention and feed-forward", read_gptj},
    Architecture{"OPTForCausalLM", "OPT: GPT with learned positions", read_opt},
    Architecture{"BloomForCausalLM", "BLOOM: alibi, a norm behind the embedding", read_bloom},
    Architecture{"FalconForCausalLM", "Falcon: attention beside feed-forward", read_falcon},
    Architecture{"RWForCausalLM", "the same by its first name", read_falcon},
    Architecture{"PhiForCausalLM", "Phi-1, 1.5 and 2: attention beside feed-forward", read_phi},
    Architecture{"Phi3VForCausalLM", "Phi-3 vision, its text tower", read_phi3},
    Architecture{"CohereForCausalLM", "Command R: attention beside feed-forward", read_cohere},
    Architecture{"Cohere2ForCausalLM", "Command R7B and A: a window in 3 of 4 layers",
                 read_cohere2},
    Architecture{"StableLmForCausalLM", "StableLM: LayerNorm, a quarter of a head turned",
                 read_stablelm},
    Architecture{"QWenLMHeadModel", "the first Qwen", read_qwen1},
    Architecture{"BaichuanForCausalLM", "Baichuan: q, k, v fused; 13B with alibi", read_baichuan},
    Architecture{"BaiChuanForCausalLM", "the same by its first name", read_baichuan},
    Architecture{"ChatGLMModel", "ChatGLM 2 and 3, GLM-4 by its own code", read_chatglm},
    Architecture{"ChatGLMForConditionalGeneration", "the same", read_chatglm},
    Architecture{"ExaoneForCausalLM", "EXAONE 3", read_exaone3},
    Architecture{"MiniCPMForCausalLM", "MiniCPM: Llama with scales", read_minicpm},
    Architecture{"MiniCPM3ForCausalLM", "MiniCPM 3: latent attention", read_minicpm3},
    Architecture{"Ernie4_5ForCausalLM", "ERNIE 4.5 without experts", read_ernie},
    Architecture{"NemotronForCausalLM", "Nemotron 4, Minitron: no gate, LayerNorm", read_nemotron},
    Architecture{"HunYuanDenseV1ForCausalLM", "Hunyuan: norms on each head", read_qwen3},
    Architecture{"HunYuanMoEV1ForCausalLM", "Hunyuan-A13B: experts, one of them shared",
                 read_hunyuan_moe},
    Architecture{"MiMoForCausalLM", "MiMo: Qwen2; the token-prediction layer is left out",
                 read_qwen2},
    Architecture{"Glm4vForConditionalGeneration", "GLM-4.1V and 4.6V Flash, their text tower",
                 tower_of<read_glm4>},
    Architecture{"Glm4vMoeForConditionalGeneration", "GLM-4.5V and 4.6V, their text tower",
                 tower_of<read_glm4_moe>},
    Architecture{"DeepseekForCausalLM", "the first DeepSeek with experts", read_deepseek_v1},
    Architecture{"PhiMoEForCausalLM", "Phi-3.5 with experts, LayerNorm", read_phimoe},
    Architecture{"PhimoeForCausalLM", "the same in transformers", read_phimoe},
    Architecture{"DbrxForCausalLM", "DBRX: q, k, v fused, 4 of 16 experts", read_dbrx},
    Architecture{"KimiVLForConditionalGeneration", "Kimi-VL, its text tower",
                 tower_of<read_deepseek>},
    Architecture{"LlavaForConditionalGeneration", "LLaVA, Pixtral: the text tower that it names",
                 read_named_tower},
    Architecture{"LlavaNextForConditionalGeneration", "the same", read_named_tower},
    Architecture{"LlavaOnevisionForConditionalGeneration", "the same", read_named_tower},
    Architecture{"InternVLChatModel", "InternVL, likewise", read_named_tower},
    Architecture{"InternVLForConditionalGeneration", "the same", read_named_tower},
    Architecture{"Idefics2ForConditionalGeneration", "Idefics, likewise", read_named_tower},
    Architecture{"Idefics3ForConditionalGeneration", "the same, and SmolVLM", read_named_tower},
    Architecture{"SmolVLMForConditionalGeneration", "SmolVLM 2, likewise", read_named_tower},
    Architecture{"PaliGemmaForConditionalGeneration", "PaliGemma, likewise", read_named_tower},
    Architecture{"Qwen2AudioForConditionalGeneration", "Qwen2-Audio, likewise", read_named_tower},
    Architecture{"VoxtralForConditionalGeneration", "Voxtral, likewise", read_named_tower},
    Architecture{"MixtralForCausalLM", "experts in all layers", read_mixtral},
    Architecture{"OlmoeForCausalLM", "OLMoE: experts in all layers, norms across heads",
                 read_olmoe},
    Architecture{"MiniMaxM2ForCausalLM", "MiniMax M2: norms across all heads", read_minimax_m2},
    Architecture{"Ernie4_5_MoeForCausalLM", "ERNIE 4.5 with experts", read_ernie_moe},
    Architecture{"Qwen2MoeForCausalLM", "with a gated shared expert", read_qwen2_moe},
    Architecture{"Qwen3MoeForCausalLM", "no shared expert", read_qwen3_moe},
    Architecture{"Qwen3VLMoeForConditionalGeneration", "Qwen3-VL with experts, its text tower",
                 tower_of<read_qwen3_moe>},
    Architecture{"Qwen3NextForCausalLM", "gated delta nets in 3 of 4 layers", read_qwen3_next},
    Architecture{"Qwen3_5ForConditionalGeneration", "Qwen3.5 and 3.6, their text tower",
                 tower_of<read_qwen3_5>},
    Architecture{"Qwen3_5ForCausalLM", "the text tower alone", tower_of<read_qwen3_5>},
    Architecture{"Qwen3_5MoeForConditionalGeneration",
                 "Qwen3.5 and 3.6 with experts, their text tower", tower_of<read_qwen3_5_moe>},
    Architecture{"Qwen3_5MoeForCausalLM", "the text tower alone", tower_of<read_qwen3_5_moe>},
    Architecture{"GraniteMoeForCausalLM", "Granite 3 with experts", read_granite_moe},
    Architecture{"Glm4MoeForCausalLM", "GLM-4.5: dense first layers", read_glm4_moe},
    Architecture{"DeepseekV2ForCausalLM", "DeepSeek V2 and V2-Lite: latent attention",
                 read_deepseek_v2},
    Architecture{"DeepseekV3ForCausalLM", "DeepSeek V3, Moonlight, Kimi K2: latent attention",
                 read_deepseek},
    Architecture{"DeepseekV32ForCausalLM", "DeepSeek V3.2: V3 and an indexer in each layer",
                 read_deepseek_v32},
    Architecture{"GlmMoeDsaForCausalLM", "GLM-5: the same", read_glm_dsa},
    Architecture{"KimiK25ForConditionalGeneration", "Kimi K2.5, its text tower",
                 tower_of<read_deepseek>},
    Architecture{"Glm4MoeLiteForCausalLM", "GLM-4.7-Flash: latent attention", read_glm4_moe_lite},
    Architecture{"BailingMoeForCausalLM", "Ling and Ring, first generation", read_bailing_moe},
    Architecture{"BailingMoeV2ForCausalLM", "Ling and Ring 2.0", read_bailing_moe_v2},
    Architecture{"Llama4ForConditionalGeneration", "Llama 4, its text tower", read_llama4},
    Architecture{"Llama4ForCausalLM", "the text tower alone", read_llama4},
    Architecture{"Lfm2ForCausalLM", "LFM2: short convolutions in most layers", read_lfm2},
    Architecture{"Lfm2MoeForCausalLM", "LFM2 with experts", read_lfm2_moe},
    Architecture{"GraniteMoeHybridForCausalLM", "Granite 4: attention, Mamba-2, or both",
                 read_granite_hybrid},
    Architecture{"FalconH1ForCausalLM", "Falcon-H1: Mamba-2 beside attention", read_falcon_h1},
    Architecture{"NemotronHForCausalLM", "Nemotron-H: Mamba-2, attention or feed-forward a layer",
                 read_nemotron_h},
    Architecture{"JambaForCausalLM", "Mamba in most layers, experts in some", read_jamba},
    Architecture{"GptOssForCausalLM", "biased experts, attention sinks", read_gpt_oss},
    Architecture{"BertForMaskedLM", "BERT and what is built like it: BGE, E5, GTE, MiniLM",
                 read_bert},
    Architecture{"RobertaForMaskedLM", "RoBERTa: BERT with other words", read_roberta},
    Architecture{"XLMRobertaForMaskedLM", "XLM-R, BGE-M3, multilingual E5", read_roberta},
    Architecture{"DistilBertForMaskedLM", "DistilBERT: six layers of BERT", read_distilbert},
    Architecture{"DebertaV2ForMaskedLM", "DeBERTa-v3: scores of distances", read_deberta},
    Architecture{"ModernBertForMaskedLM", "ModernBERT: rotations, gates, windows", read_modernbert},
};

// A name that differs in its small and capital letters only is misspelt; one that is merely near
// is another model, whose reader would count wrongly.
std::string other_case(std::string_view name) {
  const auto same = [](char a, char b) { return small_letter(a) == small_letter(b); };
  for (const Architecture& each : known_model_types)
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
  for (const Architecture& each : known_model_types)
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
    if (tower != nullptr && tower->read != read_named_tower) {
      // Files of these two say what differs from the family's first, its 7B.
      if (name == "LlamaForCausalLM") return read_llama_tower(text);
      if (name == "MistralForCausalLM") return read_mistral_first(text);
      return tower->read(text);
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
constexpr std::array without_effect{"model_type",
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
                                    "output_router_logits"};

}  // namespace

std::span<const Architecture> architectures() {
  return known_model_types;
}

Model read_hf_config(const Table& root, std::string name) {
  Model model;
  if (const Architecture* architecture = find_architecture(root)) {
    model = architecture->read(root);
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
