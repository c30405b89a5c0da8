#include "scenarios/foreign/programs/hf/trainer_reader.hpp"
#include "scenarios/foreign/programs/programs.hpp"

namespace stepsim {

Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source) {
  const bool pairs =
      question.launch != nullptr && question.launch->program.find("dpo") != std::string::npos;
  const std::string loss = source.root().text_or("loss_type", "dpo_norm");
  const bool alone = loss == "simpo" || loss == "wpo";
  TrainerReader reader(question, source,
                       {.name = "open-instruct",
                        .table = "programs/open_instruct/open-instruct-tuning",
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
                        .format = bitsandbytes_format(quantised ? 4 : 0),
                        .format_key = "use_qlora",
                        .dropout_key = "lora_dropout"});
  return reader.finish();
}

}  // namespace stepsim
