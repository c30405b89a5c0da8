#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scenarios/foreign/programs/hf/trl_grpo.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

std::string word_at(MappedSource& source, std::string_view key) {
  return in_small_letters(source.text(key));
}

bool asks(MappedSource& source, std::string_view key) {
  if (!source.keys_below(key).empty()) return true;
  constexpr std::array nothing{"", "false", "no", "none", "0", "0.0", "[]"};
  return !holds(nothing, std::string_view(word_at(source, key)));
}

// ---- what is trained ----

// A method's trainer does this beside the pass of the policy.
struct RlMethod {
  std::string_view name, scenario;
  bool reference = false;  // a frozen model goes along
};
constexpr std::array methods{RlMethod{"dpo", "dpo", true}, RlMethod{"ipo", "dpo", true},
                             RlMethod{"orpo", "dpo"},      RlMethod{"simpo", "dpo"},
                             RlMethod{"kto", "kto", true}, RlMethod{"grpo", "grpo"}};
// A head of labels has a method without a word for `rl`.
struct LabelMethod {
  std::string_view key, word, scenario;
};
constexpr std::array label_methods{
    LabelMethod{"reward_model", "", "reward"},
    LabelMethod{"process_reward_model", "", "classify_tokens"},
    LabelMethod{"model_type", "automodelforsequenceclassification", "classify"},
    LabelMethod{"model_type", "automodelfortokenclassification", "classify_tokens"}};

const LabelMethod* label_method_of(MappedSource& source) {
  const auto said = std::ranges::find_if(label_methods, [&](const LabelMethod& each) {
    return each.word.empty() ? source.on(each.key) : word_at(source, each.key) == each.word;
  });
  return said == label_methods.end() ? nullptr : &*said;
}

// Returns null for plain rows, and the first of the methods where the one that is said is not
// known.
const RlMethod* read_axolotl_method(MappedSource& source) {
  const std::string said = word_at(source, "rl");
  if (said.empty()) return nullptr;
  const auto method = std::ranges::find(methods, said, &RlMethod::name);
  if (method != methods.end()) return &*method;
  const std::vector<std::string> known = texts_of(methods, &RlMethod::name);
  constexpr std::array others{"gdpo", "ebft"};
  source.problem("rl", holds(others, std::string_view(said))
                           ? fmt::format("{} of an Axolotl file is not read yet; expected {}", said,
                                         one_of(known))
                           : expected_one_of(known, said));
  return &methods.front();
}

// Puts the method. Its loss costs what that of pairs does, with or without a second model beside
// the first.
void put_method(MappedSource& source, const RlMethod* method, const LabelMethod* labels) {
  if (labels != nullptr) {
    source.put("job.method", std::string(labels->scenario), labels->key);
    if (source.says("num_labels"))
      source.put("job.labels", source.whole("num_labels", 2, 1, 1'000'000), "num_labels");
    return;
  }
  if (method == nullptr) return source.put("job.method", "sft", "rl");
  source.put("job.method", std::string(method->scenario), "rl",
             method->name == method->scenario
                 ? ""
                 : fmt::format("{} runs pairs as {} does", method->name, method->scenario));
  const bool stored = method->reference && source.on("precompute_ref_log_probs");
  source.put("job.reference_model", method->reference && !stored,
             stored ? "precompute_ref_log_probs" : "rl");
  if (stored)
    source.without("precompute_ref_log_probs",
                   "the pass that stores the reference's results comes before the first step");
}

constexpr std::string_view length_key = "sequence_len", axolotl_rows_key = "micro_batch_size",
                           axolotl_batches_key = "gradient_accumulation_steps";

struct Batch {
  std::int64_t length = 512, rows = 1, accumulation = 1;
};
Batch batch_of(MappedSource& source) {
  return {source.whole(length_key, 512, 1, most_tokens),
          source.whole(axolotl_rows_key, 1, 1, most_rows),
          source.whole(axolotl_batches_key, 1, 1, most_rows)};
}

// Pairs go through TRL's collator, which knows nothing of pad_to_sequence_len.
void put_padding(MappedSource& source, DataOfSource& data) {
  const bool filled = source.on("pad_to_sequence_len"), free = source.on("dpo_padding_free");
  data.padding_key = data.pairs ? "dpo_padding_free" : "pad_to_sequence_len";
  data.padding = data.pairs ? (free ? Padding::none : Padding::longest)
                            : (filled ? Padding::row : Padding::longest);
}

void put_job(MappedSource& source, bool packed, bool pairs) {
  const Batch batch = batch_of(source);
  source.put("job.sequence", batch.length, length_key);
  source.put("job.packing", packed, "sample_packing");
  source.put("job.micro_batch", batch.rows, axolotl_rows_key);
  source.put("job.gradient_accumulation", batch.accumulation, axolotl_batches_key);
  DataOfSource data{.packed = packed, .pairs = pairs};
  data.epochs = source.number("num_epochs", 1, 0.001, 1e6);
  const double steps = source.number("max_steps", 0, -1, 1e12),
               tokens = source.number("total_num_tokens", 0, 0, 1e18);
  data.steps_said = steps > 0 || tokens > 0;
  if (steps > 0)
    source.put("job.optimizer_steps", fmt::format("{:.0f}", steps), "max_steps");
  else if (tokens > 0)
    source.put("job.tokens", fmt::format("{:.0f}", tokens * data.epochs), "total_num_tokens",
               data.epochs == 1 ? "" : fmt::format("{:.4g} times", data.epochs));
  if (steps <= 0) source.put("job.epochs", fmt::format("{}", data.epochs), "num_epochs");
  if (const double share = source.number("sample_packing_eff_est", 0, 0, 1); share > 0 && packed) {
    source.put("job.fill", fmt::format("{}", share), "sample_packing_eff_est");
    data.fill_said = true;
  }
  put_padding(source, data);
  assume_data(source.question(), data, source.result());
}

void put_saves(MappedSource& source) {
  const std::string strategy = word_at(source, "save_strategy");
  if (strategy == "no" || strategy == "false") return;
  const auto& cluster = source.around().cluster;
  const bool drives = !cluster || cluster->node.count(PartKind::nvme) > 0;
  if (const double steps = source.number("save_steps", 0, 0, 1e12); steps >= 1 && drives) {
    source.put("job.save.every", fmt::format("{:.0f}", steps), "save_steps");
    if (source.on("save_only_model")) source.put("job.save.states", false, "save_only_model");
  } else if (source.number("saves_per_epoch", 0, 0, 1e6) > 0) {
    source.without("saves_per_epoch",
                   "how many steps an epoch has depends on the data: --set job.save.every=N counts "
                   "them");
  }
}

// The trainer evaluates where data are held back and it is told when: core/builders/base.py.
void put_evaluation(MappedSource& source) {
  const double held = source.number("val_set_size", 0, 0, 1e12);
  const double steps = source.number("eval_steps", 0, 0, 1e12),
               in_epoch = source.number("evals_per_epoch", 0, 0, 1e6);
  const std::string_view key =
      source.says("eval_strategy") ? "eval_strategy" : "evaluation_strategy";
  const std::string when = word_at(source, key);
  const bool told = steps > 0 || in_epoch > 0 || when == "steps" || when == "epoch";
  if (!told || when == "no" || (held <= 0 && !source.says("test_datasets"))) return;
  const std::string_view rows_key =
      source.says("eval_batch_size") ? std::string_view("eval_batch_size") : axolotl_rows_key;
  source.put("job.evaluation.micro_batch", source.text(rows_key, "1"), rows_key);
  if (steps >= 1)
    source.put("job.evaluation.every", fmt::format("{:.0f}", steps), "eval_steps");
  else if (in_epoch > 0)
    source.put("job.evaluation.every", fmt::format("{:.6g}", std::min(1 / in_epoch, 0.999999)),
               "evals_per_epoch");
  if (held > 0) source.put("job.evaluation.rows", fmt::format("{}", held), "val_set_size");
}

// ---- how ----

// A plugin that is named is on, unless its own key says otherwise: integrations/*/args.py.
bool has_plugin(MappedSource& source, std::string_view name) {
  return std::ranges::any_of(words_at(source, "plugins"), [&](const std::string& each) {
    return each.ends_with(fmt::format(".{}", name));
  });
}

// Keys of Liger are the plugin's: without it Axolotl drops them when it reads the file.
bool liger_on(MappedSource& source, std::string_view key) {
  const bool said = source.on(key);
  return said && has_plugin(source, "LigerPlugin");
}

void note_idle_liger(MappedSource& source) {
  if (has_plugin(source, "LigerPlugin")) return;
  std::vector<std::string_view> idle;
  for (const std::string_view key :
       {"liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_swiglu",
        "liger_cross_entropy", "liger_fused_linear_cross_entropy"})
    if (source.on(key)) idle.push_back(key);
  if (!idle.empty())
    source.note(fmt::format(
        "{}: Axolotl does not read {} without plugins: [axolotl.integrations.liger.LigerPlugin]; "
        "the step is without {}",
        fmt::join(idle, ", "), idle.size() == 1 ? "it" : "them", idle.size() == 1 ? "it" : "them"));
}

// Kernels of Liger are those of a stack: all of them, or none.
void put_stack(MappedSource& source) {
  std::vector<std::string_view> kernels;
  for (const std::string_view key :
       {"liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_swiglu"})
    if (liger_on(source, key)) kernels.push_back(key);
  note_idle_liger(source);
  const bool all = liger_on(source, "liger_rope") && liger_on(source, "liger_rms_norm") &&
                   (liger_on(source, "liger_glu_activation") || liger_on(source, "liger_swiglu"));
  put_stack_of(source, all ? "stacks_with_liger" : "stacks", all ? "liger_rms_norm" : "plugins",
               all ? "Axolotl with Liger's kernels" : "Axolotl");
  if (all) return;
  for (const std::string_view key : kernels)
    source.without(
        key, "Liger's kernels of norms, rotations and activations count together or not at all");
}

ShardingFacts put_sharded_by_pytorch(MappedSource& source, std::string_view key) {
  // Older releases wrote "fsdp_" before each key of the block.
  const auto key_of = [&](std::string_view name) {
    const std::string old = fmt::format("fsdp_config.fsdp_{}", name);
    return source.says(old) ? old : fmt::format("fsdp_config.{}", name);
  };
  const auto said = [&](std::string_view name) { return word_at(source, key_of(name)); };
  const bool on_top = source.says("fsdp_version");
  const std::string version_key = on_top ? "fsdp_version" : key_of("version"),
                    reshard_key = key_of("reshard_after_forward"),
                    offload_key = key_of("offload_params");
  const std::string kinds = source.says("fsdp") ? source.text("fsdp") : "";
  return put_fsdp(source, {.key = key,
                           .strategy = fmt::format("{} {}", kinds, said("sharding_strategy")),
                           .version = key == "dp_shard_size" ? "2" : word_at(source, version_key),
                           .version_key = source.says(version_key) ? version_key : key,
                           .reshard = said("reshard_after_forward"),
                           .reshard_key = source.says(reshard_key) ? reshard_key : key,
                           .replicas = source.whole("dp_replicate_size", 1, 1, most_ranks),
                           .replicas_key = "dp_replicate_size",
                           .offload = is_yes(said("offload_params")),
                           .offload_key = source.says(offload_key) ? offload_key : key,
                           .checkpointing = is_yes(said("activation_checkpointing"))});
}

ShardingFacts put_sharding(MappedSource& source) {
  const bool inside = !source.keys_below("deepspeed").empty();
  const bool fsdp = asks(source, "fsdp") || asks(source, "fsdp_config");
  const std::string deepspeed = source.text("deepspeed");
  if (inside) source.problem("deepspeed", "expected the name of a file, found a block of keys");
  if (!deepspeed.empty() && fsdp) {
    source.problem("deepspeed", "stands beside fsdp: Axolotl takes one of them");
    return {};
  }
  if (!deepspeed.empty()) return put_deepspeed_file(source, "deepspeed", deepspeed);
  const bool sized = source.whole("dp_shard_size", 1, 1, most_ranks) > 1;
  if (!fsdp && !sized) return put_replicas(source, "deepspeed");
  return put_sharded_by_pytorch(source, asks(source, "fsdp_config") ? "fsdp_config"
                                        : asks(source, "fsdp")      ? "fsdp"
                                                                    : "dp_shard_size");
}

void put_checkpointing(MappedSource& source, const ShardingFacts& sharding) {
  const std::string said = word_at(source, "gradient_checkpointing"),
                    offloading = word_at(source, "activation_offloading");
  const bool elsewhere = said == "offload" || said == "offload_disk" || said == "unsloth";
  const bool full = elsewhere || source.on("gradient_checkpointing");
  const bool inside = sharding.fsdp && (source.on("fsdp_config.activation_checkpointing") ||
                                        source.on("fsdp_config.fsdp_activation_checkpointing"));
  source.put("strategy.checkpointing", full || inside ? "full" : "none",
             full || !inside ? "gradient_checkpointing" : "fsdp_config");
  if (full || inside) put_reentrant(source);
  if (elsewhere || (!offloading.empty() && offloading != "false" && offloading != "no"))
    source.put("strategy.offload.activations", "cpu",
               offloading.empty() ? "gradient_checkpointing" : "activation_offloading");
  if (said == "offload_disk" || offloading == "disk")
    source.without("activation_offloading", "what waits on drives is counted as on the host");
  if (const bool compiled = source.on("torch_compile");
      compiled || word_at(source, "torch_compile") == "auto")
    source.put("strategy.compile", compiled, "torch_compile");
}

void read_frozen(MappedSource& source) {
  constexpr std::string_view key = "unfrozen_parameters";
  if (!asks(source, key)) return;
  const std::vector<std::string> trained = source.texts(key);
  const bool text_tower = std::ranges::any_of(trained, [](const std::string& name) {
    return name.find("language_model") != std::string::npos && name.ends_with('+');
  });
  if (text_tower)
    source.note(
        "unfrozen_parameters: the text tower is trained as a whole; the frozen towers are not "
        "counted");
  else
    source.without(key, "all parameters have gradients and states");
}

// ---- kernels ----

void put_kernel_of_attention(MappedSource& source, bool packed) {
  // If several are on, the first of these counts.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> flags{
      {{"xformers_attention", "xformers"},
       {"flex_attention", "flex_attention"},
       {"flash_attention", "flash_attention_2"},
       {"sdp_attention", "sdpa"},
       {"eager_attention", "eager"}}};
  constexpr std::string_view key = "attn_implementation";
  const std::string named = word_at(source, key);
  if (named == "sage" || named == "fp8") {
    source.without(key, "attention in 8 bits, taken as flash attention");
    return source.put("strategy.attention", "flash", key);
  }
  if (!named.empty()) return put_attention(source, key, named, packed);
  for (const auto& [flag, implementation] : flags)
    if (source.on(flag)) return put_attention(source, flag, std::string(implementation), packed);
  source.put("strategy.attention", packed ? "sdpa_efficient" : "sdpa", "flash_attention",
             "PyTorch's own is the models' usual one");
}

void read_plugins(MappedSource& source) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> on_by_name{
      {{"DenseMixerPlugin", "dense_mixer"},
       {"SpectrumPlugin", "spectrum_top_fraction"},
       {"GrokfastPlugin", "grokfast_alpha"},
       {"DiffusionPlugin", "diffusion"},
       {"MoraPlugin", "mora"},
       {"NemoGymPlugin", "nemo_gym_enabled"},
       {"LMEvalPlugin", "lm_eval_post_train"}}};
  for (const auto& [plugin, key] : on_by_name)
    if (has_plugin(source, plugin) && !source.says(key) && source.keys_below(key).empty())
      source.without("plugins", source.facts().table("not_modelled").text(key));
}

void put_loss(MappedSource& source, bool pairs) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kernels{
      {{"cut_cross_entropy", "fused"},
       {"liger_fused_linear_cross_entropy", "fused"},
       {"liger_cross_entropy", "in_place"},
       {"chunked_cross_entropy", "chunks"}}};
  const bool cut = has_plugin(source, "CutCrossEntropyPlugin");
  const auto chosen = std::ranges::find_if(kernels, [&](const auto& each) {
    return each.first.starts_with("liger_")
               ? liger_on(source, each.first)
               : source.on(each.first, cut && each.first == "cut_cross_entropy");
  });
  // The trainers of pairs take the logits themselves, and none of these is called.
  if (pairs) {
    const bool fused = source.on("dpo_use_liger_kernel");
    source.put("strategy.cross_entropy", fused ? "fused" : "logits_16",
               fused ? "dpo_use_liger_kernel" : "rl", fused ? "" : "of pairs, over all logits");
    if (chosen != kernels.end() && !fused)
      source.note(
          "kernels of the loss are for sft: the trainer of pairs takes logits and their "
          "log-probabilities itself");
    return;
  }
  if (chosen == kernels.end())
    return source.put("strategy.cross_entropy", "logits", "liger_fused_linear_cross_entropy");
  const bool cuts = chosen->first == "cut_cross_entropy";
  source.put("strategy.cross_entropy", std::string(chosen->second),
             cuts && !source.says(chosen->first) ? "plugins" : chosen->first,
             cuts ? "logits are never whole, as in Liger's" : "");
}

// Returns whether functions of Axolotl's own run adapters. Where a file has no word for them they
// are taken where they can be: utils/schemas/validation.py, check_auto_enable_lora_kernels.
bool fuses_adapters(MappedSource& source, const std::string& adapter,
                    const ShardingFacts& sharding) {
  constexpr std::array keys{"lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel",
                            "lora_embedding_kernel"};
  const bool said = std::ranges::any_of(keys, [&](const char* key) { return source.says(key); });
  if (said) return source.on("lora_mlp_kernel") || source.on("lora_qkv_kernel");
  const std::string usually = source.text("lora_kernels_of_release", "any");
  if (usually == "none" || (usually == "zero_dropout" && !source.says("lora_dropout")))
    return false;
  if (usually == "zero_dropout" && source.number("lora_dropout", 0, 0, 1) > 0) return false;
  const auto& cluster = source.around().cluster;
  const bool several = cluster && cluster->ranks() > 1;
  return !source.says("rl") && !(adapter == "lora" && source.on("load_in_8bit")) &&
         !source.on("trust_remote_code") && !(several && sharding.fsdp && !sharding.fsdp2);
}

void put_adapters(MappedSource& source, const ShardingFacts& sharding) {
  const std::string adapter = word_at(source, "adapter");
  if (adapter.empty()) return;
  const std::vector<std::string> known{"lora", "qlora"};
  if (!holds(known, adapter)) return source.problem("adapter", expected_one_of(known, adapter));
  const bool linear = source.on("lora_target_linear"), quantised = source.on("load_in_4bit");
  if (adapter == "qlora" && source.says("load_in_4bit") && !quantised)
    source.problem("load_in_4bit", "Axolotl has no qlora without it");
  if (adapter == "qlora" && source.on("load_in_8bit"))
    source.problem("load_in_8bit", "Axolotl has no qlora with it");
  const bool four = adapter == "qlora" || quantised, eight = source.on("load_in_8bit");
  const bool experts = source.on("quantize_moe_experts") && quantised;
  if (source.on("quantize_moe_experts") && !quantised)
    source.without("quantize_moe_experts", "frozen matrices are counted with 16 bits");
  const std::string_view modules_key = linear ? "lora_target_linear" : "lora_target_modules";
  std::vector<std::string> modules{"all-linear"};
  if (!linear) modules = words_at(source, modules_key);
  put_adapter(source, {.rank_key = "lora_r",
                       .modules_key = modules_key,
                       .modules = std::move(modules),
                       .format = experts ? "nf4_all"
                                         : bitsandbytes_format(four    ? 4
                                                               : eight ? 8
                                                                       : 0),
                       .format_key = experts     ? "quantize_moe_experts"
                                     : quantised ? "load_in_4bit"
                                     : eight     ? "load_in_8bit"
                                                 : "adapter",
                       .whole_key = "lora_modules_to_save",
                       .dora_key = "peft_use_dora",
                       .dropout_key = "lora_dropout",
                       .fused = fuses_adapters(source, adapter, sharding),
                       .fused_key = "lora_mlp_kernel"});
}

// Axolotl loads in the type that it trains in, and peft keeps adapters in 32 bits.
void put_loaded_model(MappedSource& source) {
  constexpr std::string_view key = "peft_autocast_adapter_dtype";
  const bool raised = !word_at(source, "adapter").empty() && source.on(key, true);
  put_loaded(source, raised ? Loaded::in_32_bits : Loaded::in_16_bits, raised ? key : "bf16");
}

void put_kernels_of_experts(MappedSource& source, const ShardingFacts& sharding) {
  const std::int64_t parallel = source.whole("expert_parallel_size", 1, 1, most_ranks);
  const auto& model = source.around().model;
  if (!model || !model->experts) return;
  const bool megablocks = word_at(source, "mlp_impl") == "megablocks";
  constexpr std::array flags{"use_scattermoe", "use_sonicmoe", "use_grouped_moe_kernels"};
  const auto flag = std::ranges::find_if(flags, [&](const char* key) { return source.on(key); });
  const std::string chosen = word_at(source, "experts_implementation");
  constexpr std::array grouped{"grouped_mm", "scattermoe", "sonicmoe"};
  if (megablocks)
    source.put("strategy.moe.kernel", "megablocks", "mlp_impl");
  else if (flag != flags.end())
    source.put("strategy.moe.kernel", "grouped", *flag);
  else if (chosen == "batched_mm" || holds(grouped, std::string_view(chosen)))
    source.put("strategy.moe.kernel", chosen == "batched_mm" ? "padded" : "grouped",
               "experts_implementation");
  else
    put_experts(source, "mlp_impl");
  // Both run kernels over all experts, out of modules that the model's code keeps apart.
  const bool patched = megablocks || source.on("use_grouped_moe_kernels");
  if (patched && !model->experts->fused)
    source.put("strategy.moe.layout", "separate",
               megablocks ? "mlp_impl" : "use_grouped_moe_kernels",
               "experts stay as the model's own code stores them");
  if (parallel > 1) source.put("strategy.moe.expert_parallel", parallel, "expert_parallel_size");
  if (!sharding.stage_3) return;
  // Kernels over all experts at once need them gathered at once, too.
  const bool marked = holds(source.facts().texts("gathers_experts_at_once"), model->architecture);
  const bool at_once = marked || megablocks || flag != flags.end();
  put_leaf_modules(source, at_once, "deepspeed",
                   marked    ? "Axolotl marks the block of experts of this model"
                   : at_once ? "a kernel over all experts"
                             : "Axolotl does not mark the block of experts of this model");
}

// Ranks that the sizes make together, where the file says the size of shards: no others may be
// left.
std::int64_t ranks_said(MappedSource& source) {
  const auto size = [&](std::string_view key) { return source.whole(key, 1, 1, most_ranks); };
  if (size("dp_shard_size") == 1) return 0;
  const std::int64_t ring =
      std::max(size("context_parallel_size"), size("sequence_parallel_degree"));
  return size("dp_shard_size") * size("dp_replicate_size") * size("tensor_parallel_size") * ring;
}

void check_ranks(MappedSource& source, std::int64_t said) {
  const auto& cluster = source.around().cluster;
  if (said == 0 || !cluster || static_cast<std::int64_t>(cluster->ranks()) == said) return;
  source.problem(
      "dp_shard_size",
      fmt::format("with the sizes beside it {} ranks are asked for, and the machine has {}: "
                  "expected --cluster or --nodes with as many",
                  said, std::uint32_t{cluster->ranks()}));
}

// Puts tensor and context parallelism.
void put_parallel(MappedSource& source) {
  if (const std::int64_t tensor = source.whole("tensor_parallel_size", 1, 1, most_ranks);
      tensor > 1) {
    source.put("strategy.tensor_parallel.size", tensor, "tensor_parallel_size");
    source.put("strategy.tensor_parallel.sequence", false, "tensor_parallel_size",
               "transformers divides matrices, not tokens");
  }
  const std::string_view key =
      source.says("context_parallel_size") ? "context_parallel_size" : "sequence_parallel_degree";
  if (const std::int64_t ring = source.whole(key, 1, 1, most_ranks); ring > 1)
    put_contiguous_ring(source, ring, key);
}

void put_grpo(MappedSource& source) {
  const Batch batch = batch_of(source);
  put_trl_grpo(source, {.trainer = "trl.",
                        .server = "vllm.",
                        .mode = "server",
                        .rows = batch.rows,
                        .accumulation = batch.accumulation,
                        .longest_prompt = batch.length,
                        .prompt_key = std::string(length_key),
                        .rows_key = std::string(axolotl_rows_key)});
}

}  // namespace

Translation translate_axolotl(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "Axolotl", "programs/axolotl/axolotl");
  source.take_releases({"axolotl"});
  source.put_model("base_model");
  const std::int64_t ranks = ranks_said(source);
  const bool alone = word_at(source, "rl") == "grpo";
  GpusOfSource gpus =
      ranks > 0 || alone ? GpusOfSource{.gpus = ranks,
                                        .why = "dp_shard_size and the sizes beside it make so many",
                                        .learners_alone = alone}
                         : gpus_of(question);
  gpus.alone = !alone;
  assume_machine(question, source.root(), source.result(), gpus);
  source.look_around();
  check_ranks(source, ranks);
  put_stack(source);
  const RlMethod* method = read_axolotl_method(source);
  const LabelMethod* labels = method == nullptr ? label_method_of(source) : nullptr;
  const bool grpo = method != nullptr && method->scenario == "grpo",
             pairs = labels != nullptr ? labels->scenario == "reward" : method != nullptr && !grpo,
             packed = labels == nullptr && source.on("sample_packing");
  if (grpo) {
    put_grpo(source);
  } else {
    put_method(source, method, labels);
    put_job(source, packed, pairs);
    const bool all = !source.says("adapter") && !source.on("freeze_mm_modules");
    put_images(source, {.trains_tower = all,
                        .trains_projector = all,
                        .others = {"freeze_mm_modules", "image_size"}});
    put_saves(source);
    put_evaluation(source);
  }
  const ShardingFacts sharding = put_sharding(source);
  put_host_threads(source, sharding);
  if (const std::string optimizer = word_at(source, "optimizer"); !optimizer.empty())
    put_optimizer(source, "optimizer", optimizer, sharding);
  else
    source.put("strategy.optimizer", "adamw", "optimizer");
  put_checkpointing(source, sharding);
  read_frozen(source);
  bool whole = false;
  if (source.on("float16"))
    source.put("strategy.precision", "fp16", "float16");
  else
    whole = put_types(source);
  const bool narrow = source.on("fp8_enable_fsdp_float8_all_gather");
  if (source.on("fp8")) {
    source.put_precision("fp8", "true");
    if (narrow) put_narrow_gather(source, "fp8_enable_fsdp_float8_all_gather", sharding);
  }
  put_kernel_of_attention(source, packed && !grpo);
  read_plugins(source);
  if (!grpo && labels == nullptr) put_loss(source, pairs);
  put_adapters(source, sharding);
  if (!sharding.sharded && !whole) put_loaded_model(source);
  put_kernels_of_experts(source, sharding);
  put_parallel(source);
  return source.finish();
}

}  // namespace stepsim
