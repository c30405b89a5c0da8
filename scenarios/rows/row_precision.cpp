// In how many bits a row kept what, and which kernels and which optimizer it ran.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

// Which kernel, where a row names it or is older than kernels that keep no scores: the first of
// them was published in June 2022.
void write_attention(const StepRow& row, RowText& text) {
  const std::string named = lower_case(row.id + row.source + row.framework);
  const std::string notes = lower_case(row.notes);
  if (contains(named, "fa3") || contains(named, "flash_attention_3") ||
      says(notes, "flashattention-3") || says(notes, "flash attention 3")) {
    text.strategy += "  attention: flash3\n";
  } else if (says(notes, "eager attention")) {
    text.strategy += "  attention: eager\n";
  } else if (contains(row.source, "/2022-") || contains(row.flops_definition, "2205.05198")) {
    text.strategy += "  attention: eager\n";
    text.assume("scores of attention in memory");
  }
}

// Megatron has a buffer in 32 bits for all gradients. Megatron-Bridge's recipes for pre-training
// models of DeepSeek's kind (recipes/moonlight, recipes/deepseek) keep that and the moments in 16;
// those for fine-tuning them do not. Its overlap is on in Megatron-Bridge and in what people run at
// scale; Megatron-SWIFT leaves it off.
void write_buffers(const StepRow& row, RowText& text) {
  const std::string framework = lower_case(row.framework), model = lower_case(row.model);
  const bool half = contains(framework, "bridge") && !contains(lower_case(row.task), "sft") &&
                    (contains(model, "moonlight") || contains(model, "deepseek"));
  text.strategy +=
      half ? "  gradient_dtype: bf16\n  moment_dtype: bf16\n" : "  gradient_dtype: fp32\n";
  if (row.stage.value_or(0) != 1 || offloads(row)) return;
  const bool overlap = !contains(framework, "swift");
  text.strategy += fmt::format(
      "  distributed_optimizer: {{overlap_grad_reduce: {0}, overlap_param_gather: {0}}}\n",
      overlap);
}

// configs/7B_sft.py of InternEvo: overlap_sync_grad, but not overlap_sync_param.
void write_shared_states(const StepRow& row, RowText& text) {
  if (row.stage.value_or(0) != 1 || offloads(row)) return;
  text.strategy +=
      "  distributed_optimizer: {overlap_grad_reduce: true, overlap_param_gather: false";
  if (row.replicas.value_or(1) > 1 && row.shards)
    text.strategy += fmt::format(", shard: {:.0f}", *row.shards);
  text.strategy += "}\n";
}

// Other than bf16 or fp16 with fp32 sums: nothing else is modelled.
void refuse_precision(const StepRow& row, const RowWords& words, RowText& text) {
  constexpr std::array<std::string_view, 6> narrow{"fp8", "float8", "fp4", "fp6", "int8", "int4"};
  const bool other = std::any_of(narrow.begin(), narrow.end(), [&](std::string_view type) {
    return says(words.precision, type);
  });
  const bool wide = words.precision.starts_with("fp32") || words.precision.starts_with("tf32") ||
                    words.precision.starts_with("float32");
  if (other || wide) text.lack(fmt::format("the precision \"{}\"", row.precision));
}

void refuse_optimizer(const StepRow& row, const RowWords& words, RowText& text) {
  if (words.optimizer.empty() || contains(words.optimizer, "adam") ||
      contains(words.optimizer, "moments") || contains(words.optimizer, "distributed"))
    return;
  text.lack(fmt::format("the optimizer \"{}\"", row.optimizer));
}

// Without fp32 parameters the moments are in 16 bits as well. KempnerForge casts the model before
// it is sharded. Ranks with a copy each keep fp32 parameters, too, unless all is said to be narrow.
void write_master(const RowWords& words, RowText& text) {
  if (contains(words.precision, "pure bf16") || contains(words.framework, "kempner"))
    text.strategy += "  master_weights: false\n";
  else if (contains(text.strategy, "zero: 0\n"))
    text.strategy += "  master_weights: true\n";
}

// Runs of RL on prime-rl find the probabilities of their tokens some words at a time.
void write_loss(const RowWords& words, RowText& text) {
  if (contains(words.framework, "prime-rl") && words.task.starts_with("rl"))
    text.strategy += "  cross_entropy: words_32\n";
  else if (says(words.notes, "liger") || contains(words.framework, "liger"))
    text.strategy += "  cross_entropy: fused\n";
  if (contains(words.framework, "torchtune"))
    text.strategy += contains(words.notes, "chunked") || words.checkpointing.starts_with("full")
                         ? "  cross_entropy: chunks\n"
                         : "  cross_entropy: logits\n";
}

}  // namespace

void write_precision(const StepRow& row, RowText& text) {
  const RowWords words = words_of(row);
  const std::string& word = words.optimizer;
  refuse_precision(row, words, text);
  refuse_optimizer(row, words, text);
  if (contains(words.framework, "kempner") && row.tensor_parallel.value_or(1) == 1)
    text.strategy += "  load: replica\n";
  write_master(words, text);
  if (text.stack == "megatron" && !contains(words.strategy, "fsdp")) write_buffers(row, text);
  if (text.stack == "internevo") write_shared_states(row, text);
  if (contains(word, "bf16 moments") || contains(word, "bf16 states") ||
      contains(word, "bf16 exp_avg"))
    text.strategy += "  moment_dtype: bf16\n";
  write_loss(words, text);
  write_attention(row, text);
  if (contains(words.notes + words.optimizer, "optimizer in backward"))
    text.strategy += "  update_in_backward: true\n";
  if (contains(word, "8bit") || contains(word, "8-bit"))
    text.strategy += "  optimizer: adamw_8bit\n";
  if (contains(word, "4bit") || contains(word, "4-bit"))
    text.strategy += "  optimizer: adamw_4bit\n";
}

}  // namespace stepsim
