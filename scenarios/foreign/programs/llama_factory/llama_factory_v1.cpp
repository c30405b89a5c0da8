#include <fmt/format.h>

#include <filesystem>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::string_view sharding_key = "dist_config.name", adapter_key = "peft_config.name";

// "llamafactory-cli dpo", or a word of the file's own name: the file itself does not say.
bool trains_on_pairs(const SourceQuestion& question) {
  if (question.launch != nullptr) return question.launch->program.ends_with(" dpo");
  const std::string file = std::filesystem::path(question.file).filename().string();
  std::string word;
  for (const char c : in_small_letters(file) + '.') {
    if (c >= 'a' && c <= 'z') {
      word += c;
    } else {
      if (word == "dpo") return true;
      word.clear();
    }
  }
  return false;
}

bool has_liger(MappedSource& source) {
  const std::string kernels =
      source.text("kernel_config.name") + source.text("kernel_config.include_kernels");
  return kernels.find("liger") != std::string::npos;
}

void read_v1_job(MappedSource& source, bool pairs) {
  const std::string loss = source.text("pref_loss", "sigmoid");
  source.put("job.method", pairs ? "dpo" : "sft", "");
  if (pairs && loss == "sigmoid")
    source.put("job.reference_model", true, "pref_loss", "log-probabilities of the first policy");
  source.put("job.packing", false, "batching_strategy");
  if (const std::string said = source.text("batching_strategy", "normal"); said != "normal")
    source.without("batching_strategy", "rows are counted as long as their limit allows");
  const double epochs = source.number("num_train_epochs", 3, 0, 1e6);
  const std::int64_t steps = source.whole("max_steps", 0, -1, 1'000'000'000);
  if (steps > 0)
    source.put("job.optimizer_steps", steps, "max_steps");
  else
    source.put("job.epochs", fmt::format("{}", epochs), "num_train_epochs");
  assume_data(source.question(),
              {.packed = false,
               .pairs = pairs,
               .epochs = epochs,
               .steps_said = steps > 0,
               .padding = Padding::longest},
              source.result());
}

ShardingFacts read_v1_sharding(MappedSource& source) {
  const std::string said = source.choice(sharding_key),
                    file = source.text("dist_config.config_file");
  const std::int64_t experts = source.whole("dist_config.ep_size", 1, 1, most_ranks),
                     replicas = source.whole("mp_replicate_size", 1, 1, most_ranks);
  const std::string reshard = source.text("dist_config.reshard_after_forward", "true");
  const bool offload = source.on("dist_config.offload_params");
  if (said.empty()) {
    put_loaded(source, Loaded::in_16_bits, sharding_key);
    return put_replicas(source, sharding_key);
  }
  if (said == "deepspeed") return put_deepspeed_file(source, "dist_config.config_file", file);
  const ShardingFacts sharding = put_fsdp(source, {.key = sharding_key,
                                                   .version = "2",
                                                   .reshard = in_small_letters(reshard),
                                                   .replicas = replicas,
                                                   .replicas_key = "mp_replicate_size",
                                                   .offload = offload,
                                                   .offload_key = "dist_config.offload_params"});
  if (experts > 1) put_learners(source, {.experts = experts, .experts_key = "dist_config.ep_size"});
  return sharding;
}

void read_v1_adapter(MappedSource& source) {
  const std::string said = source.choice(adapter_key), packed = source.text("quant_config.name");
  const std::int64_t bits = source.whole("quant_config.quantization_bit", 0, 0, 16);
  if (said.empty()) return;
  if (said == "freeze")
    return source.without(adapter_key, "all parameters have gradients and states");
  std::string format;
  if (!packed.empty()) format = bitsandbytes_format(bits);
  put_adapter(source, {.rank_key = "peft_config.r",
                       .modules_key = "peft_config.target_modules",
                       .usual_modules = "all",
                       .format = format,
                       .format_key = "quant_config.quantization_bit",
                       .whole_key = "peft_config.modules_to_save",
                       .dora_key = "peft_config.use_dora",
                       .dropout_key = "peft_config.lora_dropout"});
  if (!packed.empty() && format.empty())
    source.without("quant_config.quantization_bit", "frozen matrices are counted with 16 bits");
}

void read_v1_context(MappedSource& source) {
  const std::int64_t ranks = source.whole("cp_size", 1, 1, most_ranks);
  if (const std::string mode = source.text("cp_mode", "ulysses"); mode != "ulysses")
    source.problem("cp_mode", fmt::format("expected ulysses, found \"{}\"", mode));
  if (ranks > 1) source.put("strategy.sequence_parallel.ulysses", ranks, "cp_size");
}

}  // namespace

Translation translate_llama_factory_v1(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "LLaMA-Factory",
                      "programs/llama_factory/llama-factory-v1");
  const bool pairs = trains_on_pairs(question), liger = has_liger(source),
             fsdp = source.text(sharding_key).starts_with("fsdp");
  source.put_model("model");
  assume_machine(question, source.root(), source.result(), gpus_of(question));
  source.look_around();
  put_stack_of(source,
               fsdp    ? "stacks_with_fsdp"
               : liger ? "stacks_with_liger"
                       : "stacks",
               sharding_key, "");
  if (fsdp && liger)
    source.without("kernel_config.name", "kernels of norms, rotations and activations");
  read_v1_job(source, pairs);
  const ShardingFacts sharding = read_v1_sharding(source);
  put_optimizer(source, "optim_config.name",
                in_small_letters(source.text("optim_config.name", "adamw")), sharding);
  if (!source.on("bf16", true)) source.without("bf16", "taken as bf16 over 32-bit parameters");
  put_attention(source, "flash_attn", source.text("flash_attn", "sdpa"), false);
  source.put("strategy.cross_entropy", "logits", "");
  read_v1_adapter(source);
  read_v1_context(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
