#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/hf/trainer_reader.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

HfTraining stage_of(const SourceQuestion& question, const Document& document) {
  const Table root = document.root();
  const std::string stage = root.text_or("stage", "sft");
  const std::vector<std::string> known{"pt", "sft", "rm", "dpo", "kto"};
  if (stage == "pt" || stage == "sft") return HfTraining::sft;
  if (stage == "rm") return HfTraining::reward;
  if (stage == "kto") return HfTraining::kto;
  if (stage == "dpo") {
    const std::string loss = root.text_or("pref_loss", "sigmoid");
    return loss == "orpo" || loss == "simpo" ? HfTraining::alone : HfTraining::dpo;
  }
  const auto origin = root.origin("stage");
  const bool other = stage == "ppo";
  throw UserError({{question.file, origin ? origin->line : 0, "stage",
                    other ? fmt::format("{} is not read yet; expected {}", stage, one_of(known))
                          : expected_one_of(known, stage)}});
}

// Its third trainer is another program.
void refuse_megatron(const SourceQuestion& question, const Table& root) {
  const Document facts = import_facts(question.data, "programs/llama_factory/llama-factory");
  constexpr std::string_view message =
      "training by Megatron through mcore_adapter (USE_MCA=1) is not read; a script of Megatron-LM "
      "or a file of Megatron-Bridge is";
  for (const std::string& key : facts.root().texts("of_megatron"))
    if (const auto origin = root.origin(key); root.has(key))
      throw UserError({{question.file, origin ? origin->line : 0, key, std::string(message)}});
  if (question.launch == nullptr) return;
  const auto mca = question.launch->environment.find("USE_MCA");
  if (mca != question.launch->environment.end() && is_yes(mca->second.text))
    throw UserError({{question.script, mca->second.line, "USE_MCA", std::string(message)}});
}

// The trainer does what it is told, and training is not what it does by itself.
void refuse_no_training(const SourceQuestion& question, const Table& root) {
  if (is_yes(root.text_or("do_train", ""))) return;
  for (const std::string_view key : {"do_predict", "do_eval"})
    if (is_yes(root.text_or(key, ""))) {
      const auto origin = root.origin(key);
      throw UserError({{question.file, origin ? origin->line : 0, std::string(key),
                        "without do_train: true nothing is trained"}});
    }
}

void read_factory_kernels(TrainerReader& reader, bool liger) {
  MappedSource& source = reader.source();
  const std::string said = in_small_letters(source.text("flash_attn", "auto"));
  const Table words = source.facts().table("attention");
  const std::vector<std::string> known = words.keys();
  if (std::find(known.begin(), known.end(), said) == known.end()) {
    source.problem("flash_attn", expected_one_of(known, said));
  } else {
    const std::string kernel = words.text(said);
    const bool masked = kernel == "sdpa" && source.on("neat_packing");
    source.put("strategy.attention", masked ? "sdpa_efficient" : kernel, "flash_attn",
               masked ? "packed rows need a mask" : "");
  }
  const std::string backend = in_small_letters(source.text("fp8_backend", "auto"));
  const bool narrow = source.on("fp8_enable_fsdp_float8_all_gather");
  if (source.on("fp8")) {
    source.put_precision(source.says("fp8_backend") ? "fp8_backend" : "fp8", backend);
    if (narrow) reader.read_narrow_gather("fp8_enable_fsdp_float8_all_gather");
  }
  if (reader.wordless()) {
    // model/loader.py and trl's modeling_value_head.py: a head of one number with a bias stands
    // beside the model's own, which runs as well.
    source.put("job.word_head", true, "stage", "the model's own head runs beside that of rewards");
    source.put("job.label_bias", true, "stage");
  } else if (reader.pairs())
    source.put("strategy.cross_entropy", "logits", "stage", "of pairs, over all logits in 32 bits");
  else
    source.put("strategy.cross_entropy", liger ? "fused" : "logits", "enable_liger_kernel");
}

void read_factory_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  const std::string type = source.choice("finetuning_type", "lora");
  if (type == "freeze")
    return source.problem("finetuning_type",
                          "freeze trains the last layers alone, which is not modelled; full and "
                          "lora are");
  if (type != "lora") return;
  const std::int64_t bits = source.whole("quantization_bit", 0, 0, 16);
  const std::string type_of_bits = source.text("quantization_type"),
                    method = source.text("quantization_method", "bnb");
  const bool nested = source.on("double_quantization", true);
  std::string format;
  if (method == "bnb" || method == "bitsandbytes")
    format = bitsandbytes_format(bits, type_of_bits, nested);
  else if (method == "hqq" && bits == 4)
    format = "hqq";
  put_adapter(source, {.rank_key = "lora_rank",
                       .modules_key = "lora_target",
                       .usual_modules = "all",
                       .format = format,
                       .format_key = "quantization_bit",
                       .whole_key = "additional_target",
                       .dora_key = "use_dora",
                       .dropout_key = "lora_dropout"});
  if (bits != 0 && format.empty())
    source.without("quantization_bit", "frozen matrices are counted with 16 bits");
}

}  // namespace

Translation translate_llama_factory(const SourceQuestion& question, const Document& source) {
  refuse_megatron(question, source.root());
  refuse_no_training(question, source.root());
  const std::string stage = source.root().text_or("stage", "sft");
  // Releases of 2023 cut prompts and answers each by itself (LLaMA-Efficient-Tuning @v0.1.4,
  // src/llmtuner/hparams/data_args.py: 512 each).
  const bool in_parts = !source.root().has("cutoff_len") && source.root().has("max_source_length");
  TrainerReader reader(question, source,
                       {.name = "LLaMA-Factory",
                        .table = "programs/llama_factory/llama-factory",
                        .training = stage_of(question, source),
                        .method_key = "stage",
                        .length_key = in_parts ? "max_source_length" : "cutoff_len",
                        .answer_key = in_parts ? "max_target_length" : "",
                        .length = 2048,
                        .packs = stage == "pt" || is_yes(source.root().text_or("neat_packing", "")),
                        .samples_key = "max_samples",
                        .loads = TrainerProgram::Loads::raised,
                        .releases = {"llama-factory", "transformers", "peft", "deepspeed"}});
  MappedSource& words = reader.source();
  const bool liger = words.on("enable_liger_kernel");
  reader.read_surroundings(liger, "enable_liger_kernel");
  reader.read_job();
  // hparams/model_args.py and finetuning_args.py: larger images are made so small.
  put_images(words, {.tower_key = "freeze_vision_tower",
                     .projector_key = "freeze_multi_modal_projector",
                     .pixels_key = "image_max_pixels",
                     .most_pixels = 768 * 768,
                     .others = {"image_min_pixels"}});
  reader.read_sharding();
  reader.read_checkpointing("disable_gradient_checkpointing",
                            !words.on("disable_gradient_checkpointing"));
  if (words.says("use_reentrant_gc") && !words.on("disable_gradient_checkpointing"))
    words.put("strategy.reentrant", words.on("use_reentrant_gc", true), "use_reentrant_gc");
  reader.read_saves();
  reader.read_evaluation();
  read_factory_kernels(reader, liger);
  read_factory_adapter(reader);
  return reader.finish();
}

}  // namespace stepsim
