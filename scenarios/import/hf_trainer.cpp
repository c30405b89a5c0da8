#include "scenarios/import/hf_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <optional>

#include "scenarios/import/accelerate.hpp"
#include "scenarios/import/trainer_words.hpp"
#include "scenarios/import/trl_grpo.hpp"
#include "scenarios/import/trl_method.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::string_view hf_rows_key = "per_device_train_batch_size",
                           hf_batches_key = "gradient_accumulation_steps";

// A trainer that shares out nothing keeps a model in this type: 16 bits; what `dtype` says, and
// that is 32 bits unless it says otherwise (github.com/huggingface/trl trl/trainer/model_config.py:
// no dtype); or 32 bits for what is trained, unless pure_bf16 (github.com/hiyouga/LLaMA-Factory
// src/llamafactory/model/adapter.py: trainable parameters are cast).
enum class Loads : std::uint8_t { half, by_dtype, raised };

struct Program {
  std::string_view name, table;
  HfTraining training = HfTraining::sft;
  std::string_view method_key{};
  std::string_view length_key{};
  std::int64_t length = 1024;
  std::string_view model_key = "model_name_or_path";
  std::int64_t rows = 8, batches = 1;  // of a micro-batch, and of a step
  bool packs = false;                  // unless it is told otherwise
  std::string_view packing_key = "packing";
  std::string_view padding_free_key{};
  Loads loads = Loads::half;
  std::string_view prompt_key = "max_prompt_length";
  // "zero2" is a file that the program comes with, "fsdp2" likewise.
  bool deepspeed_by_name = false;
};

// These words say what a program calls the length of the run, and whether it stores what the
// reference model finds.
struct RunWords {
  std::string_view steps = "max_steps", epochs = "num_train_epochs";
  double usual_epochs = 3;
  bool stores_reference = false;
};

// Reads what the trainer of transformers is told; the rest is in Program, and in `words`.
class TrainerReader {
 public:
  TrainerReader(const SourceQuestion& question, const Document& source, const Program& program)
      : question_(question),
        program_(program),
        source_(question, source, program.name, program.table) {}

  MappedSource& source() { return source_; }
  bool grpo() const { return program_.training == HfTraining::grpo; }
  bool packed() const { return packed_; }
  // Pairs, or answers that were liked or not.
  bool pairs() const { return program_.training != HfTraining::sft; }

  // Reads model, machine and stack.
  void read_surroundings(bool liger, std::string_view liger_key) {
    source_.put_model(program_.model_key);
    find_accelerate();
    GpusOfSource gpus = gpus_of(question_);
    if (gpus.gpus == 0 && accelerate_) gpus = accelerate_->gpus;
    if (const GpusOfSource said = own_processes(); said.gpus > 0) gpus = said;
    launched_ = gpus;
    if (grpo()) gpus = with_server(source_, grpo_words(), gpus);
    assume_machine(question_, source_.root(), source_.result(), gpus);
    source_.look_around();
    const bool fsdp =
        (accelerate_ && in_small_letters(accelerate_->sharding) == "fsdp") || source_.says("fsdp");
    const std::string_view stacks = fsdp    ? "stacks_with_fsdp"
                                    : liger ? "stacks_with_liger"
                                            : "stacks";
    put_stack_of(source_, stacks, liger ? liger_key : "",
                 fmt::format("{}{}", program_.name, fsdp ? " with PyTorch's own sharding" : ""));
    if (fsdp && liger)
      source_.without(liger_key, "no stack has Liger's kernels beside PyTorch's own sharding");
  }

  void read_job(const RunWords& run = {}) {
    const bool kto = program_.training == HfTraining::kto;
    source_.put("job.method", kto ? "kto" : pairs() ? "dpo" : "sft", program_.method_key);
    if (pairs()) {
      const bool stored = source_.on("precompute_ref_log_probs", run.stores_reference);
      source_.put("job.reference_model",
                  (program_.training == HfTraining::dpo || kto) && !stored ? "true" : "false",
                  stored ? "precompute_ref_log_probs" : program_.method_key);
      if (stored)
        source_.without("precompute_ref_log_probs",
                        "the pass that stores the reference's results comes before the first step");
    }
    source_.put("job.sequence",
                std::to_string(source_.whole(program_.length_key, program_.length, 1, most_tokens)),
                program_.length_key);
    packed_ = !pairs() && source_.on(program_.packing_key, program_.packs);
    source_.put("job.packing", packed_ ? "true" : "false", program_.packing_key);
    source_.put("job.micro_batch",
                std::to_string(source_.whole(hf_rows_key, program_.rows, 1, most_rows)),
                hf_rows_key);
    source_.put("job.gradient_accumulation",
                std::to_string(source_.whole(hf_batches_key, program_.batches, 1, most_rows)),
                hf_batches_key);
    read_length(run);
  }

  // A step of GRPO, which the trainer is told in rows of a GPU, and their number.
  void read_grpo() { put_trl_grpo(source_, grpo_words()); }

  void read_sharding() {
    const std::string deepspeed = source_.text("deepspeed"), fsdp = source_.text("fsdp");
    std::int64_t threads = 0;
    if (accelerate_) {
      if (!deepspeed.empty() || !fsdp.empty())
        source_.note("the file of Accelerate decides on the sharding, not the arguments");
      const AcceleratePut put = put_accelerate(source_, *accelerate_);
      sharding_ = put.sharding;
      checkpoints_inside_ = put.checkpointing;
      threads = put.threads;
    } else if (const std::string named = source_.text("deepspeed_config"); !named.empty()) {
      sharding_ = put_deepspeed_file(source_, "deepspeed_config", named);
    } else if (in_small_letters(deepspeed) == "true") {
      sharding_ = put_switched_deepspeed();
    } else if (!deepspeed.empty() && !fsdp.empty()) {
      source_.problem("deepspeed", "stands beside fsdp: the trainer takes one of them");
    } else if (!deepspeed.empty()) {
      const bool by_name = program_.deepspeed_by_name && deepspeed.find('.') == std::string::npos;
      sharding_ =
          put_deepspeed_file(source_, "deepspeed", by_name ? deepspeed + ".json" : deepspeed);
    } else if (fsdp == "fsdp2" && program_.deepspeed_by_name) {
      sharding_ = put_fsdp(source_, {.key = "fsdp", .strategy = "full_shard", .version = "2"});
      checkpoints_inside_ = true;
    } else if (!fsdp.empty() && fsdp != "false") {
      sharding_ = put_own_fsdp(fsdp);
    } else {
      sharding_ = put_replicas(source_, "deepspeed");
      const bool several = !source_.around().cluster || source_.around().cluster->ranks() > 1;
      if (question_.launch == nullptr && program_.table == "trl" && several)
        source_.result().assumptions.push_back(
            {"sharding", "none: each GPU has everything",
             "neither deepspeed nor fsdp is said; a file of Accelerate may", "--accelerate FILE"});
    }
    const std::string optimizer = in_small_letters(source_.text("optim", "adamw_torch_fused"));
    put_optimizer(source_, "optim", optimizer, sharding_);
    put_host_threads(source_, sharding_, threads);
    const bool whole = put_types(source_);
    if (!sharding_.sharded && !switched_ && !whole) read_loaded();
  }

  void read_narrow_gather(std::string_view key) { put_narrow_gather(source_, key, sharding_); }

  void read_checkpointing(std::string_view key, bool full) {
    source_.put("strategy.checkpointing", full || checkpoints_inside_ ? "full" : "none",
                full || !checkpoints_inside_ ? key : std::string_view("--config_file"));
    if (full || checkpoints_inside_) put_reentrant(source_);
    if (source_.on("torch_compile")) source_.put("strategy.compile", "true", "torch_compile");
    put_experts(source_, "");
  }

  void read_saves() {
    const std::string when = in_small_letters(source_.text("save_strategy", "steps"));
    if (switched_) return;  // it saves at its end
    const double steps = source_.number("save_steps", 500, 0, 1e12);
    const auto& cluster = source_.around().cluster;
    if (when != "steps" || steps < 1 || (cluster && cluster->node.count(PartKind::nvme) == 0))
      return;
    source_.put("job.save.every", fmt::format("{:.0f}", steps), "save_steps");
    if (source_.on("save_only_model")) source_.put("job.save.states", "false", "save_only_model");
  }

  Translation finish() { return source_.finish(); }

 private:
  void read_loaded() {
    if (program_.loads == Loads::raised)
      return put_loaded(source_, source_.on("pure_bf16") ? Loaded::in_16_bits : Loaded::in_32_bits,
                        "pure_bf16");
    if (program_.loads == Loads::half) return put_loaded(source_, Loaded::in_16_bits, "deepspeed");
    const std::string_view key = source_.says("dtype") ? "dtype" : "torch_dtype";
    const std::string said = source_.text(key);
    const bool half = said == "auto" || said.find("16") != std::string::npos;
    const bool adapters = source_.on("use_peft"), few_bits = source_.on("load_in_4bit");
    // peft keeps adapters in 32 bits, and TRL in 16 beside 4.
    put_loaded(source_, (adapters ? few_bits : half) ? Loaded::in_16_bits : Loaded::in_32_bits,
               adapters ? "load_in_4bit" : key);
    if (adapters && !half) source_.put("strategy.lora.frozen", "fp32", key);
  }

  TrlGrpoWords grpo_words() {
    return {.rows = source_.whole(hf_rows_key, program_.rows, 1, most_rows),
            .accumulation = source_.whole(hf_batches_key, program_.batches, 1, most_rows),
            .longest_prompt = source_.whole(program_.prompt_key, 512, 1, most_tokens),
            .prompt_key = std::string(program_.prompt_key),
            .rows_key = std::string(hf_rows_key),
            .launched = launched_};
  }

  // The block's keys may begin with "fsdp_", which the trainer takes off.
  ShardingFacts put_own_fsdp(const std::string& strategy) {
    const auto said = [&](std::string_view name) {
      return source_.text(fmt::format("fsdp_config.fsdp_{}", name),
                          source_.text(fmt::format("fsdp_config.{}", name)));
    };
    if (source_.says("fsdp_config"))
      source_.without("fsdp_config",
                      "keys of a file of their own are not read; a block of them is");
    checkpoints_inside_ = is_yes(said("activation_checkpointing"));
    return put_fsdp(source_, {.key = "fsdp",
                              .strategy = strategy,
                              .version = said("version"),
                              .version_key = "fsdp_config",
                              .reshard = said("reshard_after_forward"),
                              .reshard_key = "fsdp_config",
                              .offload = is_yes(said("offload_params")),
                              .offload_key = "fsdp_config"});
  }

  // A program that makes DeepSpeed's settings itself, as DeepSpeed-Chat does (its ds_utils.py).
  ShardingFacts put_switched_deepspeed() {
    switched_ = true;
    const std::int64_t stage = source_.whole("zero_stage", 0, 0, 3);
    const bool offload = source_.on("offload");
    source_.put("strategy.zero", std::to_string(stage), "zero_stage");
    if (stage > 0)
      source_.put("strategy.zero_optimization.overlap_comm", "true", "deepspeed",
                  "the program's own settings");
    if (stage == 0 && offload)
      source_.without("offload", "stage 0 keeps all on the GPU");
    else if (offload)
      source_.put("strategy.offload.optimizer", "cpu", "offload");
    if (stage == 3 && offload) source_.put("strategy.offload.parameters", "cpu", "offload");
    return {.sharded = stage > 0, .stage_3 = stage == 3, .optimizer_on_host = offload && stage > 0};
  }

  // `trl sft` hands keys on to Accelerate, as arguments and from its file.
  bool hands_on() const {
    return program_.table == "trl" &&
           (question_.launch == nullptr || question_.launch->program.starts_with("trl "));
  }

  GpusOfSource own_processes() {
    if (!hands_on() || !source_.says("num_processes")) return {};
    const std::int64_t gpus = source_.whole("num_processes", 0, 1, most_ranks),
                       nodes = source_.whole("num_machines", 1, 1, most_ranks);
    if (gpus == 0 || gpus % nodes == 0)
      return {gpus, nodes, fmt::format("num_processes: {}", gpus), gpus / nodes};
    source_.problem("num_processes",
                    fmt::format("{} machines cannot share {} processes alike", nodes, gpus));
    return {};
  }

  // The file that `accelerate_config` names: one that TRL comes with, or a path.
  void find_named_accelerate() {
    if (!hands_on() || accelerate_) return;
    const std::string said = source_.text("accelerate_config");
    if (said.empty()) return;
    const std::string folder = data_file(question_.data, "scenarios/import/trl-accelerate");
    std::vector<std::string> known;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
      known.push_back(entry.path().stem().string());
    std::sort(known.begin(), known.end());
    const auto file =
        holds(known, said) ? fmt::format("{}/{}.yaml", folder, said) : find_beside(question_, said);
    if (file) {
      accelerate_ = read_accelerate(*file);
      return;
    }
    source_.problem("accelerate_config",
                    fmt::format("expected {}, or a file beside this one, found \"{}\"{}",
                                one_of(known), said, did_you_mean(said, known)));
  }

  void find_accelerate() {
    find_told_accelerate();
    find_named_accelerate();
  }

  void find_told_accelerate() {
    std::string said;
    for (const auto& [key, value] : question_.settings)
      if (key == accelerate_setting) said = value;
    const bool launched = question_.launch != nullptr && !question_.launch->file.text.empty();
    // The trainer's own arguments on sharding overrule the launcher's options.
    if (said.empty() && !launched && question_.launch != nullptr &&
        source_.text("deepspeed").empty() && source_.text("fsdp").empty())
      accelerate_ = accelerate_of_options(*question_.launch, question_.file);
    if (said.empty() && launched) said = question_.launch->file.text;
    if (said.empty()) return;
    const auto file = find_beside(question_, said);
    if (!file)
      throw UserError({{question_.file, launched ? question_.launch->file.line : 0, "",
                        fmt::format("no file of Accelerate {}, neither beside this file nor from "
                                    "here",
                                    said)}});
    accelerate_ = read_accelerate(*file);
    if (launched) lay_options_over(*accelerate_, *question_.launch);
  }

  void read_length(const RunWords& run) {
    const double steps = source_.number(run.steps, -1, -1, 1e12);
    DataOfSource data{.packed = packed_, .pairs = pairs(), .padding = Padding::longest};
    if (const auto key = program_.padding_free_key; !key.empty() && source_.on(key)) {
      data.padding = Padding::none;
      data.padding_key = key;
    }
    data.epochs = source_.number(run.epochs, run.usual_epochs, 0.001, 1e6);
    data.steps_said = steps > 0;
    if (data.steps_said)
      source_.put("job.optimizer_steps", fmt::format("{:.0f}", steps), run.steps);
    else
      source_.put("job.epochs", fmt::format("{}", data.epochs), run.epochs);
    assume_data(question_, data, source_.result());
  }

  const SourceQuestion& question_;
  Program program_;
  MappedSource source_;
  std::optional<AccelerateFile> accelerate_{};
  GpusOfSource launched_{};
  ShardingFacts sharding_{};
  bool packed_ = false, checkpoints_inside_ = false;
  bool switched_ = false;  // DeepSpeed's settings are the program's own
};

// ---- TRL ----

void read_trl_kernels(TrainerReader& reader, bool liger, bool plain) {
  MappedSource& source = reader.source();
  const std::string named = source.text("attn_implementation");
  if (!named.empty())
    put_attention(source, "attn_implementation", named, reader.packed());
  else if (source.on("use_flash_attention_2"))
    source.put("strategy.attention", "flash", "use_flash_attention_2");
  else
    source.put("strategy.attention", reader.packed() ? "sdpa_efficient" : "sdpa",
               "attn_implementation", "PyTorch's own is the models' usual one");
  // Unsloth's name for inputs of layers that wait on the host.
  constexpr std::string_view unsloth_key = "use_gradient_checkpointing";
  const bool elsewhere = source.text(unsloth_key) == "unsloth";
  if (source.on("activation_offloading") || elsewhere)
    source.put("strategy.offload.activations", "cpu",
               elsewhere ? unsloth_key : "activation_offloading");
  if (reader.grpo()) return;  // probabilities of tokens are found as the stack does it
  const std::string loss = source.text("loss_type");
  const bool fused = liger || source.on("use_liger_loss");
  if (reader.pairs())
    source.put("strategy.cross_entropy", fused ? "fused" : "logits_16",
               fused ? "use_liger_kernel" : "", fused ? "" : "of pairs, over all logits");
  else if (plain && !fused)
    source.put("strategy.cross_entropy", "logits", "", "as the model's own code finds it");
  else if (loss == "nll" && !fused)
    source.put("strategy.cross_entropy", "logits", "loss_type");
  else
    source.put("strategy.cross_entropy", "fused", fused ? "use_liger_kernel" : "loss_type",
               fused ? "" : "chunk by chunk with the head");
}

void read_trl_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  constexpr std::string_view dimension = "lora_dim";  // of DeepSpeed-Chat: above 0 it is on
  const std::int64_t own_rank = source.whole(dimension, 0, 0, most_lora_rank);
  if (!source.on("use_peft") && own_rank == 0) {
    if (source.question().own_program && source.says("lora_r"))
      source.result().assumptions.push_back(
          {"adapters", "none", "lora_r is said, but no key that is known turns adapters on",
           "--set use_peft=true"});
    return;
  }
  std::vector<std::string> modules = words_at(source, "lora_target_modules");
  if (own_rank > 0 && modules.empty()) modules = {"all-linear"};
  if (own_rank > 0 && !source.on("only_optimize_lora"))
    source.without(dimension, "all other parameters are frozen");
  if (modules.empty() && source.question().own_program)
    source.result().assumptions.push_back({"matrices with adapters", "queries and values",
                                           "the program's own code may choose others",
                                           "--set lora_target_modules=all-linear"});
  if (source.question().own_program && own_rank == 0 && !source.says("lora_r"))
    source.result().assumptions.push_back({"rank of adapters", "16",
                                           "the program's own code may choose another",
                                           "--set lora_r=..."});
  put_adapter(source,
              {.rank_key = own_rank > 0 ? dimension : "lora_r",
               .modules_key = "lora_target_modules",
               .rank = own_rank > 0 ? own_rank : source.whole("lora_r", 16, 1, most_lora_rank),
               .modules = std::move(modules),
               .quantised = source.on("load_in_4bit"),
               .quantised_key = "load_in_4bit",
               .whole_key = "lora_modules_to_save"});
}

// ---- LLaMA-Factory ----

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
                          : fmt::format("expected {}, found \"{}\"{}", one_of(known), stage,
                                        did_you_mean(stage, known))}});
}

// Its third trainer is another program.
void refuse_megatron(const SourceQuestion& question, const Table& root) {
  const Document facts = import_facts(question.data, "llama-factory");
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
    source.problem("flash_attn", fmt::format("expected {}, found \"{}\"{}", one_of(known), said,
                                             did_you_mean(said, known)));
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
  if (reader.pairs())
    source.put("strategy.cross_entropy", "logits_16", "stage", "of pairs, over all logits");
  else
    source.put("strategy.cross_entropy", liger ? "fused" : "logits", "enable_liger_kernel");
}

void read_factory_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  const std::string type = source.text("finetuning_type", "lora");
  const std::vector<std::string> known{"full", "lora", "freeze"};
  if (std::find(known.begin(), known.end(), type) == known.end())
    return source.problem(
        "finetuning_type",
        fmt::format("expected {}, found \"{}\"{}", one_of(known), type, did_you_mean(type, known)));
  if (type == "freeze")
    return source.problem("finetuning_type",
                          "freeze trains the last layers alone, which is not modelled; full and "
                          "lora are");
  if (type != "lora") return;
  const std::int64_t bits = source.whole("quantization_bit", 0, 0, 16);
  std::vector<std::string> modules = words_at(source, "lora_target");
  if (modules.empty()) modules = {"all"};
  put_adapter(source, {.rank_key = "lora_rank",
                       .modules_key = "lora_target",
                       .rank = source.whole("lora_rank", 8, 1, most_lora_rank),
                       .modules = std::move(modules),
                       .quantised = bits == 4,
                       .quantised_key = "quantization_bit",
                       .whole_key = "additional_target"});
  if (bits != 0 && bits != 4)
    source.without("quantization_bit", "frozen matrices are counted with 16 bits");
}

// ---- ms-swift ----

HfTraining swift_training_of(const SourceQuestion& question, const Document& document) {
  const Table root = document.root();
  const bool rlhf = question.launch != nullptr && question.launch->program.ends_with("rlhf");
  if (!rlhf && !root.has("rlhf_type")) return HfTraining::sft;
  const std::string type = root.text_or("rlhf_type", "dpo");
  const std::vector<std::string> known{"dpo", "orpo", "simpo", "kto", "cpo", "rm", "grpo"};
  if (type == "dpo") return HfTraining::dpo;
  if (type == "orpo" || type == "simpo" || type == "cpo") return HfTraining::alone;
  if (type == "kto") return HfTraining::kto;
  if (type == "rm") return HfTraining::reward;
  if (type == "grpo") return HfTraining::grpo;
  const auto origin = root.origin("rlhf_type");
  const bool other = type == "ppo" || type == "gkd";
  throw UserError({{question.file, origin ? origin->line : 0, "rlhf_type",
                    other ? fmt::format("{} is not read yet; expected {}", type, one_of(known))
                          : fmt::format("expected {}, found \"{}\"{}", one_of(known), type,
                                        did_you_mean(type, known))}});
}

void read_swift_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  const std::string_view type_key = source.says("train_type") ? "train_type" : "tuner_type";
  const std::string type = source.text(type_key, "lora");
  if (type == "full") return;
  if (type != "lora") source.without(type_key, "adapters as LoRA has them");
  const std::int64_t bits = source.whole("quant_bits", 0, 0, 16);
  const bool quantised = bits == 4 && source.text("quant_method", "bnb") == "bnb";
  if (bits != 0 && !quantised)
    source.without("quant_bits", "frozen matrices are counted with 16 bits");
  std::vector<std::string> modules = words_at(source, "target_modules");
  if (modules.empty()) modules = {"all-linear"};
  put_adapter(source, {.rank_key = "lora_rank",
                       .modules_key = "target_modules",
                       .rank = source.whole("lora_rank", 8, 1, most_lora_rank),
                       .modules = std::move(modules),
                       .quantised = quantised,
                       .quantised_key = "quant_bits",
                       .whole_key = "modules_to_save"});
}

// swift/sequence_parallel/sequence_parallel.py: Ulysses over as many GPUs as divide the heads of
// keys and values alike, and a ring over these groups.
void put_swift_sequence(MappedSource& source) {
  constexpr std::string_view key = "sequence_parallel_size";
  const std::int64_t ranks = source.whole(key, 1, 1, most_ranks);
  if (ranks == 1) return;
  const auto& model = source.around().model;
  const std::int64_t heads =
                         model && model->attention.kv_heads > 0 ? model->attention.kv_heads : ranks,
                     columns = std::gcd(heads, ranks);
  if (columns > 1)
    source.put(
        "strategy.sequence_parallel.ulysses", std::to_string(columns), key,
        columns < ranks ? fmt::format("what divides {} heads of keys and values", heads) : "");
  if (columns < ranks)
    source.put("strategy.sequence_parallel.ring", std::to_string(ranks / columns), key,
               "over the others");
}

void read_swift_kernels(TrainerReader& reader, bool liger) {
  MappedSource& source = reader.source();
  if (const std::string named = source.text("attn_impl"); !named.empty())
    put_attention(source, "attn_impl", named, reader.packed());
  else
    source.put("strategy.attention", "sdpa", "attn_impl", "PyTorch's own is the models' usual one");
  put_swift_sequence(source);
  if (reader.grpo()) return;
  if (reader.pairs())
    source.put("strategy.cross_entropy", "logits_16", "rlhf_type", "of pairs, over all logits");
  else
    source.put("strategy.cross_entropy", liger ? "fused" : "logits", "use_liger_kernel");
}

// Returns so many micro-batches that a step has sixteen rows, where it is not told.
std::int64_t swift_batches(const SourceQuestion& question, const Document& source) {
  const std::int64_t rows = source.root().integer_or(hf_rows_key, 1, 1, most_rows),
                     gpus = std::max<std::int64_t>(1, gpus_of(question).gpus);
  return std::max<std::int64_t>(1, (16 + rows * gpus - 1) / (rows * gpus));
}

}  // namespace

Translation translate_ms_swift(const SourceQuestion& question, const Document& source) {
  TrainerReader reader(question, source,
                       {.name = "ms-swift",
                        .table = "ms-swift",
                        .training = swift_training_of(question, source),
                        .method_key = "rlhf_type",
                        .length_key = "max_length",
                        .length = 2048,
                        .model_key = "model",
                        .rows = 1,
                        .batches = swift_batches(question, source),
                        .padding_free_key = "padding_free",
                        .prompt_key = "max_length",
                        .deepspeed_by_name = true});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel");
  if (!words.says("max_length"))
    words.note(
        "max_length is not said, so that the model's own limit counts: rows are taken to be "
        "at most 2048 long");
  reader.read_surroundings(liger, "use_liger_kernel");
  reader.grpo() ? reader.read_grpo() : reader.read_job();
  reader.read_sharding();
  reader.read_checkpointing("gradient_checkpointing", words.on("gradient_checkpointing", true));
  if (!reader.grpo())
    reader.read_saves();
  else if (words.on("padding_free"))
    words.without("padding_free", "rows are counted as long as their limit allows");
  read_swift_kernels(reader, liger);
  read_swift_adapter(reader);
  return reader.finish();
}

Translation translate_trl(const SourceQuestion& question, const Document& source) {
  const Table root = source.root();
  const bool older = root.has("max_seq_length") && !root.has("max_length");
  std::vector<Assumption> assumptions;
  const TrlMethod method = read_trl_method(question, root, assumptions);
  TrainerReader reader(question, source,
                       {.name = "TRL",
                        .table = "trl",
                        .training = method.training,
                        .method_key = method.key,
                        .length_key = older ? "max_seq_length" : "max_length",
                        .padding_free_key = "padding_free",
                        .loads = Loads::by_dtype});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel"), grpo = reader.grpo();
  reader.read_surroundings(liger, "use_liger_kernel");
  append(words.result().assumptions, std::move(assumptions));
  grpo ? reader.read_grpo() : reader.read_job();
  reader.read_sharding();
  // TRL has it on unless it is told otherwise, the trainer below it off.
  reader.read_checkpointing("gradient_checkpointing",
                            words.on("gradient_checkpointing", !method.plain));
  if (!grpo) reader.read_saves();
  read_trl_kernels(reader, liger, method.plain);
  read_trl_adapter(reader);
  return reader.finish();
}

Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source) {
  const bool pairs =
      question.launch != nullptr && question.launch->program.find("dpo") != std::string::npos;
  const std::string loss = source.root().text_or("loss_type", "dpo_norm");
  const bool alone = loss == "simpo" || loss == "wpo";
  TrainerReader reader(question, source,
                       {.name = "open-instruct",
                        .table = "open-instruct-tuning",
                        .training = !pairs  ? HfTraining::sft
                                    : alone ? HfTraining::alone
                                            : HfTraining::dpo,
                        .length_key = "max_seq_length",
                        .length = 2048});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel");
  reader.read_surroundings(liger, "use_liger_kernel");
  reader.read_job({.steps = "max_train_steps",
                   .epochs = words.says("num_epochs") ? "num_epochs" : "num_train_epochs",
                   .usual_epochs = 2,
                   .stores_reference = pairs});
  reader.read_sharding();
  if (words.on("use_8bit_optimizer"))
    words.put("strategy.optimizer", "adamw_8bit", "use_8bit_optimizer");
  reader.read_checkpointing("gradient_checkpointing", words.on("gradient_checkpointing"));
  words.put("strategy.attention", words.on("use_flash_attn", true) ? "flash" : "sdpa",
            "use_flash_attn");
  words.put("strategy.cross_entropy",
            pairs   ? "logits_16"
            : liger ? "fused"
                    : "logits",
            "", pairs ? "of pairs, over all logits" : "");
  const bool quantised = words.on("use_qlora");
  if (words.on("use_lora") || quantised)
    put_adapter(words, {.rank_key = "lora_rank",
                        .modules_key = "use_lora",
                        .rank = words.whole("lora_rank", 64, 1, most_lora_rank),
                        .modules = {"all-linear"},
                        .quantised = quantised,
                        .quantised_key = "use_qlora"});
  return reader.finish();
}

Translation translate_llama_factory(const SourceQuestion& question, const Document& source) {
  refuse_megatron(question, source.root());
  refuse_no_training(question, source.root());
  const std::string stage = source.root().text_or("stage", "sft");
  TrainerReader reader(question, source,
                       {.name = "LLaMA-Factory",
                        .table = "llama-factory",
                        .training = stage_of(question, source),
                        .method_key = "stage",
                        .length_key = "cutoff_len",
                        .length = 2048,
                        .packs = stage == "pt" || is_yes(source.root().text_or("neat_packing", "")),
                        .loads = Loads::raised});
  MappedSource& words = reader.source();
  const bool liger = words.on("enable_liger_kernel");
  reader.read_surroundings(liger, "enable_liger_kernel");
  reader.read_job();
  reader.read_sharding();
  reader.read_checkpointing("disable_gradient_checkpointing",
                            !words.on("disable_gradient_checkpointing"));
  if (words.says("use_reentrant_gc") && !words.on("disable_gradient_checkpointing"))
    words.put("strategy.reentrant", words.on("use_reentrant_gc", true) ? "true" : "false",
              "use_reentrant_gc");
  reader.read_saves();
  read_factory_kernels(reader, liger);
  read_factory_adapter(reader);
  return reader.finish();
}

}  // namespace stepsim
