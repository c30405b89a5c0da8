#include "scenarios/foreign/programs/trl/trl.hpp"

#include "scenarios/foreign/programs/hf/trainer_reader.hpp"
#include "scenarios/foreign/programs/trl/trl_method.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

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

}  // namespace

Translation translate_trl(const SourceQuestion& question, const Document& source) {
  const Table root = source.root();
  const bool older = root.has("max_seq_length") && !root.has("max_length");
  std::vector<Assumption> assumptions;
  const TrlMethod method = read_trl_method(question, root, assumptions);
  TrainerReader reader(question, source,
                       {.name = "TRL",
                        .table = "programs/trl/trl",
                        .training = method.training,
                        .method_key = method.key,
                        .length_key = older ? "max_seq_length" : "max_length",
                        .padding_free_key = "padding_free",
                        .loads = TrainerProgram::Loads::by_dtype,
                        .accelerate_files = "programs/trl/trl-accelerate"});
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

}  // namespace stepsim
