// How a row spread its job, in the words of a scenario; what these cannot say is named.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

struct Words {  // of the row, in small letters
  std::string strategy, offload, checkpointing, precision, optimizer, task, framework, compile;
};

Words words_of(const StepRow& row) {
  return {lower_case(row.strategy),  lower_case(row.offload),   lower_case(row.checkpointing),
          lower_case(row.precision), lower_case(row.optimizer), lower_case(row.task),
          lower_case(row.framework), lower_case(row.compile)};
}

bool compiled(const Words& words) {
  return !words.compile.empty() && words.compile != "no" && words.compile != "eager";
}

bool fsdp(const Words& words) {
  return contains(words.strategy, "fsdp") || contains(words.strategy, "hsdp") ||
         (contains(words.framework, "fsdp") && !contains(words.strategy, "ddp"));
}

bool first_version(const Words& words) {
  constexpr std::array<std::string_view, 5> first{"fsdp1", "composer", "foundry", "litgpt",
                                                  "pytorch fsdp"};
  return std::any_of(first.begin(), first.end(),
                     [&](std::string_view word) { return contains(words.framework, word); });
}

// Composer's PURE and the policy of fms-fsdp send gradients in 16 bits, the others in 32.
bool half_gradients(const Words& words) {
  const bool said = contains(words.precision, "pure") || contains(words.precision, "bf16 reduc");
  return said || contains(words.framework, "fms");
}

void write_fsdp(const StepRow& row, const Words& words, RowText& text) {
  const double copies = row.replicas.value_or(1);
  const bool hybrid = copies > 1;
  text.strategy += fmt::format("  zero: {}\n  fsdp:\n    version: {}\n    reduce_dtype: {}\n",
                               hybrid ? "hsdp" : "fsdp", first_version(words) ? 1 : 2,
                               half_gradients(words) ? "bf16" : "fp32");
  if (hybrid) text.strategy += fmt::format("    replicate: {:.0f}\n", copies);
  if (contains(words.strategy, "grad_op") || row.stage.value_or(3) == 2)
    text.strategy += "    reshard_after_forward: false\n";
  // Composer's default.
  if (contains(words.framework, "foundry")) text.strategy += "    backward_prefetch: post\n";
  // KempnerForge wraps layers and the rest, asks for both to be resharded, stages of a pipeline
  // included, and reduces at the last micro-batch only.
  if (contains(words.framework, "kempner"))
    text.strategy +=
        "    root_group: true\n    reshard_root: true\n    reshard_after_forward: true\n"
        "    sync_each_batch: false\n";
}

double parts_of_a_copy(const StepRow& row) {
  return row.tensor_parallel.value_or(1) * row.pipeline.value_or(1) *
         row.context_parallel.value_or(1);
}

bool of_azure_post(const StepRow& row) {
  return contains(row.source, "deepspeed-azure");
}

// The recipes that the post of July 2022 links to (examples/azure of Megatron-DeepSpeed). It names
// DeepSpeed 0.6.2 for its images; its steps take what products and all collectives take one after
// the other at every batch, which releases before 0.6 do and later ones do not.
void write_azure_recipe(const StepRow& row, RowText& text) {
  text.strategy +=
      "  deepspeed_version: 0.5.10\n  zero_optimization:\n    reduce_bucket_size: 9e7\n"
      "    stage3_max_live_parameters: 3e9\n    stage3_max_reuse_distance: 3e9\n";
  text.assume("stage 3 of DeepSpeed before 0.6, whose host waits for each gather");
  if (!contains(lower_case(row.model), "1t")) return;
  text.strategy += "  offload: {optimizer: cpu}\n";
  text.assume("the optimizer on the host, as in the recipe for 1T");
}

// Parameters and states stay on the host, which updates them.
bool on_host_alone(const StepRow& row) {
  return contains(lower_case(row.task), "cpu adam step");
}

void write_host_update(const Words& words, RowText& text) {
  const std::string_view adam = contains(words.optimizer, "pytorch")     ? "operators"
                                : contains(words.optimizer, "graceadam") ? "grace"
                                                                         : "one_pass";
  text.strategy += fmt::format(
      "  zero: 3\n  offload: {{optimizer: cpu, parameters: cpu, cpu_adam: {}}}\n", adam);
}

void write_sharding(const StepRow& row, const Words& words, RowText& text) {
  // KempnerForge leaves FSDP out on a single GPU only: its optimizer wants tensors of one kind.
  const bool alone = contains(words.framework, "kempner") && row.gpus.value_or(1) == 1;
  if (fsdp(words) && !alone) {
    write_fsdp(row, words, text);
  } else if (row.stage && *row.stage <= 3) {
    text.strategy += fmt::format("  zero: {:.0f}\n", *row.stage);
    if (of_azure_post(row)) write_azure_recipe(row, text);
    if (row.replicas.value_or(1) > 1 && *row.stage > 0 && text.stack != "internevo")
      text.assume("optimizer states shared by all ranks, not by a part of them");
  } else if (alone || row.gpus.value_or(1) <= parts_of_a_copy(row) ||
             contains(words.strategy, "ddp")) {
    text.strategy += "  zero: 0\n";
  } else {
    text.lack(fmt::format("the sharding \"{}\"", row.strategy));
  }
}

// KempnerForge (distributed/tensor_parallel.py): the embedding is whole on each rank; so is the
// head of models that are cut into stages or have experts, and their tokens are not divided.
void write_plain_tensors(const StepRow& row, RowText& text) {
  const bool divided = row.pipeline.value_or(1) == 1 && !has_experts(row);
  text.strategy += fmt::format(
      "  tensor_parallel: {{size: {:.0f}, sequence: {}, gather_each: true, divide_embedding: false"
      ", {}}}\n",
      *row.tensor_parallel, divided, divided ? "gather_logits: true" : "divide_head: false");
}

void write_parallelism(const StepRow& row, const Words& words, RowText& text) {
  write_pipeline(row, text);
  const double parts = row.context_parallel.value_or(1);
  if (parts > 1)
    text.strategy += fmt::format("  sequence_parallel: {{{}: {:.0f}}}\n",
                                 contains(words.strategy, "ulysses") ? "ulysses" : "ring", parts);
  // The rows of 2022 say it where the tokens between blocks are shared, too; later ones all do.
  const bool first =
      row.source.starts_with("2205.05198") || contains(words.strategy, "interleaving");
  const bool tokens = !first || contains(words.checkpointing + words.strategy, "sequence");
  if (row.tensor_parallel.value_or(1) <= 1) return;
  if (contains(words.framework, "kempner"))
    write_plain_tensors(row, text);
  else
    text.strategy += fmt::format("  tensor_parallel: {{size: {:.0f}, sequence: {}}}\n",
                                 *row.tensor_parallel, tokens);
}

// What a row counts of its products with recomputation, over what it counts without, says how many
// of its layers ran forward twice: all of them would make four thirds of it.
void write_layers_recomputed(const StepRow& row, RowText& text) {
  const double extra = row.hfu && row.mfu && *row.mfu > 0 ? 3 * (*row.hfu / *row.mfu - 1) : 0;
  const double share = extra > 0.1 ? std::min(1.0, extra) : 0.5;
  if (extra <= 0.1) text.assume("every second layer recomputed");
  if (share < 1) text.strategy += fmt::format("  checkpoint_every: {:.3g}\n", 1 / share);
}

// Those of Megatron's modules that the word names: "selective: moe_act, layernorm".
std::vector<std::string_view> modules_in(std::string_view word) {
  std::vector<std::string_view> found;
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = begin;
    while (end < word.size() && in_name(word[end])) ++end;
    const std::string_view name = word.substr(begin, end - begin);
    if (std::find(module_names.begin(), module_names.end(), name) != module_names.end())
      found.push_back(name);
    begin = end + 1;
  }
  return found;
}

// Megatron means the core of attention by "selective", torchtitan single operators, others layers.
void write_selective(const StepRow& row, const Words& words, RowText& text) {
  const std::string& word = words.checkpointing;
  const bool named = !modules_in(word).empty();
  if ((contains(word, "layer") && !named) || contains(words.framework, "fms")) {
    text.strategy += "  checkpointing: full\n";
    write_layers_recomputed(row, text);
  } else if ((contains(word, "op") && !named) || contains(words.framework, "titan")) {
    text.strategy += "  checkpointing: operators\n";
  } else {
    text.strategy += "  checkpointing: selective\n";
    if (const auto modules = modules_in(word); !modules.empty()) {
      text.strategy += fmt::format("  recompute_modules: [{}]\n", fmt::join(modules, ", "));
      return;
    }
    if (!contains(words.framework, "megatron"))
      text.assume(fmt::format("the core of attention recomputed (\"{}\")", row.checkpointing));
  }
}

void write_checkpointing(const StepRow& row, const Words& words, const std::string& usual,
                         RowText& text) {
  const std::string& word = words.checkpointing;
  if (word.starts_with("full")) {
    text.strategy += "  checkpointing: full\n";
  } else if (word == "none" || contains(word, "selective: none")) {
    text.strategy += "  checkpointing: none\n";
  } else if (contains(word, "selective")) {
    write_selective(row, words, text);
  } else if (word.empty()) {
    const bool full = row.stage.value_or(0) == 3 && !has_adapter(row);  // adapters leave room
    const std::string way = !usual.empty() ? usual : full ? "full" : "none";
    text.strategy += fmt::format("  checkpointing: {}\n", way);
    text.assume(way == "none" ? "no checkpointing" : way + " checkpointing");
  } else {
    text.lack(fmt::format("checkpointing \"{}\"", row.checkpointing));
  }
}

// "optimizer states 50 %": the number before the sign; without one everything.
double share_in(std::string_view word) {
  std::size_t end = word.find('%');
  if (end == std::string_view::npos) return 1;
  const auto is_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  while (end > 0 && word[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && is_number(word[begin - 1])) --begin;
  double percent = 100;
  std::from_chars(word.data() + begin, word.data() + end, percent);
  return percent / 100;
}

void write_offload(const StepRow& row, const Words& words, RowText& text) {
  const std::string& word = words.offload;
  const bool activations =
      contains(word, "activation") || contains(words.checkpointing, "cpu offload");
  const bool optimizer = contains(word, "optimizer") || contains(word, "states");
  if (!activations && !offloads(row)) return;
  const double share = share_in(word);
  text.strategy += "  offload:\n";
  if (share < 1) text.strategy += fmt::format("    ratio: {:g}\n", share);
  if (activations) text.strategy += "    activations: cpu\n";
  if (optimizer || !activations) text.strategy += "    optimizer: cpu\n";
  if (contains(word, "param")) text.strategy += "    parameters: cpu\n";
}

// Which kernel, where a row names it or is older than kernels that keep no scores: the first of
// them was published in June 2022.
void write_attention(const StepRow& row, RowText& text) {
  const std::string named = lower_case(row.id + row.source + row.framework);
  if (contains(named, "fa3") || contains(named, "flash_attention_3")) {
    text.strategy += "  attention: flash3\n";
  } else if (contains(row.source, "/2022-") || contains(row.flops_definition, "2205.05198")) {
    text.strategy += "  attention: eager\n";
    text.assume("scores of attention in memory");
  }
}

// Megatron has a buffer in 32 bits for all gradients. Megatron-Bridge's recipes for models of
// DeepSeek's kind (recipes/moonlight, recipes/deepseek) keep that and the moments in 16. Its
// overlap is on in Megatron-Bridge and in what people run at scale; Megatron-SWIFT leaves it off.
void write_buffers(const StepRow& row, RowText& text) {
  const std::string framework = lower_case(row.framework), model = lower_case(row.model);
  const bool half = contains(framework, "bridge") &&
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

void write_optimizer(const StepRow& row, const Words& words, RowText& text) {
  const std::string& word = words.optimizer;
  if (contains(words.precision, "fp8")) text.lack("fp8");
  // Without fp32 parameters the moments are in 16 bits as well. KempnerForge casts the model before
  // it is sharded.
  if (contains(words.framework, "kempner") && row.tensor_parallel.value_or(1) == 1)
    text.strategy += "  load: replica\n";
  if (contains(words.precision, "bf16 params") || contains(words.precision, "pure bf16") ||
      contains(words.framework, "kempner"))
    text.strategy += "  master_weights: false\n";
  if (text.stack == "megatron" && !contains(words.strategy, "fsdp")) write_buffers(row, text);
  if (text.stack == "internevo") write_shared_states(row, text);
  if (contains(word, "bf16 moments")) text.strategy += "  moment_dtype: bf16\n";
  // Runs of RL on prime-rl find the probabilities of their tokens some words at a time.
  if (contains(words.framework, "prime-rl") && words.task.starts_with("rl"))
    text.strategy += "  cross_entropy: words_32\n";
  else if (contains(lower_case(row.notes), "liger"))
    text.strategy += "  cross_entropy: fused\n";
  write_attention(row, text);
  const std::string notes = lower_case(row.notes);
  if (contains(words.framework, "torchtune"))
    text.strategy += contains(notes, "chunked") || words.checkpointing.starts_with("full")
                         ? "  cross_entropy: chunks\n"
                         : "  cross_entropy: logits\n";
  if (contains(notes, "optimizer in backward")) text.strategy += "  update_in_backward: true\n";
  if (contains(word, "muon")) text.lack(fmt::format("the optimizer \"{}\"", row.optimizer));
  if (contains(word, "8bit") || contains(word, "8-bit"))
    text.strategy += "  optimizer: adamw_8bit\n";
}

}  // namespace

bool only_updates(const StepRow& row) {
  return contains(lower_case(row.task), "optimizer step only") || on_host_alone(row);
}

bool offloads(const StepRow& row) {
  return contains(lower_case(row.offload + row.checkpointing), "cpu");
}

std::string kind_of(const StepRow& row) {
  return fmt::format("{}{}{}", has_experts(row) ? "moe" : "dense", offloads(row) ? " offload" : "",
                     has_adapter(row) ? " lora" : "");
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  return result + '"';
}

void write_strategy(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  const Words words = words_of(row);
  text.strategy = "strategy:\n";
  if (on_host_alone(row)) return write_host_update(words, text);
  if (contains(words.task, "micro-benchmark"))
    text.lack(fmt::format("the micro-benchmark \"{}\"", row.task));
  write_sharding(row, words, text);
  write_parallelism(row, words, text);
  write_checkpointing(row, words, catalog.habits_of(text.stack).checkpointing, text);
  write_offload(row, words, text);
  write_optimizer(row, words, text);
  if (compiled(words)) text.strategy += "  compile: true\n";
  write_adapters(row, catalog, text);
  write_experts(row, catalog, text);
}

}  // namespace stepsim
