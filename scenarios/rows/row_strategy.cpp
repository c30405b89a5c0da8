// How a row spread its job, in the words of a scenario; what these cannot say is named.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

double parts_of_a_copy(const StepRow& row) {
  return row.tensor_parallel.value_or(1) * row.pipeline.value_or(1) *
         row.context_parallel.value_or(1);
}

bool first_version(const RowWords& words) {
  constexpr std::array<std::string_view, 5> first{"fsdp1", "composer", "foundry", "litgpt",
                                                  "pytorch fsdp"};
  return std::any_of(first.begin(), first.end(),
                     [&](std::string_view word) { return contains(words.framework, word); });
}

// Composer's PURE and the policy of fms-fsdp send gradients in 16 bits, the others in 32.
bool half_gradients(const RowWords& words) {
  for (const std::string_view said :
       {"pure", "bf16 reduc", "bf16 grad", "reduce in bf16", "reduction in bf16"})
    if (contains(words.precision, said)) return true;
  return contains(words.framework, "fms");
}

// Ranks that share parameters between them, over which whole copies of the model are spread.
double copies_of(const StepRow& row, const RowWords& words, RowText& text) {
  if (row.replicas) return *row.replicas;
  const double ranks = row.gpus.value_or(1) / parts_of_a_copy(row) / repeats_rows(row);
  if (row.shards && *row.shards >= 1) {
    const double copies = ranks / *row.shards;
    if (copies == std::floor(copies)) return std::max(1.0, copies);
    text.lack(fmt::format("what {:g} ranks do that {:g} share", ranks, *row.shards));
    return 1;
  }
  if (!contains(words.strategy, "hsdp") && !contains(words.strategy, "hybrid")) return 1;
  text.assume("a copy of the model on each node");
  return row.nodes.value_or(1);
}

bool compiled(const RowWords& words) {
  return !words.compile.empty() && !says_no(words.compile) && words.compile != "eager";
}

void write_fsdp(const StepRow& row, const RowWords& words, RowText& text) {
  const double copies = copies_of(row, words, text);
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

// Parameters and states stay on the host, which updates them.
bool on_host_alone(const StepRow& row) {
  return contains(lower_case(row.task), "cpu adam step");
}

void write_host_update(const RowWords& words, RowText& text) {
  const std::string_view adam = contains(words.optimizer, "pytorch")     ? "operators"
                                : contains(words.optimizer, "graceadam") ? "grace"
                                                                         : "one_pass";
  text.strategy += fmt::format(
      "  zero: 3\n  offload: {{optimizer: cpu, parameters: cpu, cpu_adam: {}}}\n", adam);
}

void write_sharding(const StepRow& row, const RowWords& words, RowText& text) {
  // KempnerForge leaves FSDP out on a single GPU only: its optimizer wants tensors of one kind.
  const bool alone = contains(words.framework, "kempner") && row.gpus.value_or(1) == 1;
  const bool whole = contains(words.strategy, "no_shard") || row.stage.value_or(3) == 0;
  if (is_fsdp(words) && !alone && !whole) {
    write_fsdp(row, words, text);
  } else if (!is_fsdp(words) && row.stage && *row.stage <= 3) {
    text.strategy += fmt::format("  zero: {:.0f}\n", *row.stage);
    if (row.replicas.value_or(1) > 1 && *row.stage > 0 && text.stack != "internevo")
      text.assume("optimizer states shared by all ranks, not by a part of them");
  } else if (alone || whole || row.gpus.value_or(1) <= parts_of_a_copy(row) ||
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

void write_parallelism(const StepRow& row, const RowWords& words, RowText& text) {
  write_pipeline(row, text);
  const double parts = row.context_parallel.value_or(1);
  if (parts > 1)
    text.strategy += fmt::format("  sequence_parallel: {{{}: {:.0f}}}\n",
                                 contains(words.strategy, "ulysses") ? "ulysses" : "ring", parts);
  // The rows of 2022 say it where the tokens between blocks are shared, too; later ones all do.
  const bool first =
      row.source.starts_with("2205.05198") || contains(words.strategy, "interleaving");
  const std::string said = words.checkpointing + words.strategy;
  const bool asked = text.stack == "megatron-deepspeed";  // --sequence-parallel, off by default
  const bool tokens =
      ((!first && !asked) || contains(said, "sequence")) && !contains(said, "no sequence");
  if (row.tensor_parallel.value_or(1) <= 1) return;
  if (contains(words.framework, "kempner"))
    write_plain_tensors(row, text);
  else
    text.strategy +=
        fmt::format("  tensor_parallel: {{size: {:.0f}, sequence: {}{}}}\n", *row.tensor_parallel,
                    tokens, contains(words.strategy, "asynctp") ? ", async: true" : "");
}

// Words that would change a step and have no key here.
void refuse_what_is_not_modelled(const StepRow& row, const RowWords& words, RowText& text) {
  for (const std::string_view task :
       {"micro-benchmark", "dpo", "reward", "inference", "generation"})
    if (contains(words.task, task)) text.lack(fmt::format("the task \"{}\"", row.task));
  for (const std::string_view way : {"zero++", "mics", "zero bubble", "zero-bubble", "zbv", "zb-h",
                                     "dualpipe", "v-half", "zb1p"})
    if (contains(words.strategy, way)) {
      text.lack(fmt::format("the sharding \"{}\"", row.strategy));
      break;
    }
}

}  // namespace

bool only_updates(const StepRow& row) {
  return contains(lower_case(row.task), "optimizer step only") || on_host_alone(row);
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
  const RowWords words = words_of(row);
  text.strategy = "strategy:\n";
  if (on_host_alone(row)) return write_host_update(words, text);
  refuse_what_is_not_modelled(row, words, text);
  write_sharding(row, words, text);
  write_parallelism(row, words, text);
  write_checkpointing(row, catalog.habits_of(text.stack).checkpointing, text);
  write_offload(row, text);
  write_precision(row, text);
  for (const std::string& line : row.settings) text.strategy += fmt::format("  {}\n", line);
  if (compiled(words)) text.strategy += "  compile: true\n";
  write_adapters(row, catalog, text);
  write_experts(row, catalog, text);
}

}  // namespace stepsim
