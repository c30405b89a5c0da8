// This writes how a row spread its job, in the words of a scenario; what these cannot say is named.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

double parts_of_a_copy(const StepRow& row) {
  return row.tensor_parallel.value_or(1) * row.pipeline.value_or(1) *
         row.context_parallel.value_or(1);
}

bool first_version(const RowWords& words) {
  return contains(words.framework, "fsdp1") || contains(words.framework, "pytorch fsdp");
}

bool half_gradients(const RowWords& words) {
  for (const std::string_view said :
       {"pure", "bf16 reduc", "bf16 grad", "reduce in bf16", "reduction in bf16"})
    if (contains(words.precision, said)) return true;
  return false;
}

// Ranks that share parameters between them, over which whole copies of the model are spread.
double copies_of(const StepRow& row, const RowWords& words, RowScenario& made) {
  if (row.replicas) return *row.replicas;
  const double ranks = row.gpus.value_or(1) / parts_of_a_copy(row) / repeats_rows(row);
  if (row.shards && *row.shards >= 1) {
    const double copies = ranks / *row.shards;
    if (copies == std::floor(copies)) return std::max(1.0, copies);
    made.lack(fmt::format("what {:g} ranks do that {:g} share", ranks, *row.shards));
    return 1;
  }
  if (!contains(words.strategy, "hsdp") && !contains(words.strategy, "hybrid")) return 1;
  made.assume("a copy of the model on each node");
  return row.nodes.value_or(1);
}

bool compiled(const RowWords& words) {
  return !words.compile.empty() && !says_no(words.compile) && words.compile != "eager";
}

// On one GPU there is nothing to share: whether the framework still wraps the model is its own
// business.
bool left_to_stack(const StepRow& row, const RowCatalog& catalog, const RowScenario& made) {
  return row.gpus.value_or(1) == 1 && made.resolved(catalog).peek("strategy.zero");
}

void write_fsdp(const StepRow& row, const RowWords& words, const RowCatalog& catalog,
                RowScenario& made) {
  const double copies = copies_of(row, words, made);
  if (!left_to_stack(row, catalog, made)) made.set("strategy.zero", copies > 1 ? "hsdp" : "fsdp");
  if (first_version(words)) made.set("strategy.fsdp.version", 1.0);
  if (half_gradients(words)) made.set("strategy.fsdp.reduce_dtype", "bf16");
  if (says(words.strategy, "fp32 master params gathered"))
    made.set("strategy.fsdp.gather_dtype", "fp32");
  if (copies > 1) made.set("strategy.fsdp.replicate", copies);
  if (contains(words.strategy, "grad_op") || row.stage.value_or(3) == 2)
    made.set("strategy.fsdp.reshard_after_forward", false);
}

// Parameters and states stay on the host, which updates them.
bool on_host_alone(const StepRow& row) {
  return contains(in_small_letters(row.task), "cpu adam step");
}

void write_host_update(const RowWords& words, RowScenario& made) {
  made.set("strategy.zero", 3.0);
  made.set("strategy.offload.optimizer", "cpu");
  made.set("strategy.offload.parameters", "cpu");
  made.set("strategy.offload.cpu_adam", contains(words.optimizer, "pytorch")     ? "operators"
                                        : contains(words.optimizer, "graceadam") ? "grace"
                                                                                 : "one_pass");
}

// Writes copies of the states as the stack's distributed optimizer has them, where it has one.
void write_state_shards(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  if (row.replicas.value_or(1) <= 1 || *row.stage < 1) return;
  if (row.shards && made.resolved(catalog).peek("strategy.distributed_optimizer"))
    made.set("strategy.distributed_optimizer.shard", *row.shards);
  else
    made.assume("optimizer states shared by all ranks, not by a part of them");
}

void write_sharding(const StepRow& row, const RowWords& words, const RowCatalog& catalog,
                    RowScenario& made) {
  const bool whole = contains(words.strategy, "no_shard") || row.stage.value_or(3) == 0;
  if (is_fsdp(words) && !whole) {
    write_fsdp(row, words, catalog, made);
  } else if (!is_fsdp(words) && row.stage && *row.stage <= 3) {
    made.set("strategy.zero", *row.stage);
    write_state_shards(row, catalog, made);
  } else if (whole || row.gpus.value_or(1) <= parts_of_a_copy(row) ||
             contains(words.strategy, "ddp")) {
    made.set("strategy.zero", 0.0);
  } else {
    made.lack(fmt::format("the sharding \"{}\"", row.strategy));
  }
}

void write_parallelism(const StepRow& row, const RowWords& words, const RowCatalog& catalog,
                       RowScenario& made) {
  write_pipeline(row, catalog, made);
  if (const double parts = row.context_parallel.value_or(1); parts > 1)
    made.set(contains(words.strategy, "ulysses") ? "strategy.sequence_parallel.ulysses"
                                                 : "strategy.sequence_parallel.ring",
             parts);
  if (row.tensor_parallel.value_or(1) <= 1) return;
  made.set("strategy.tensor_parallel.size", *row.tensor_parallel);
  const std::string said = words.checkpointing + words.strategy;
  if (contains(said, "sequence"))
    made.set("strategy.tensor_parallel.sequence", !contains(said, "no sequence"));
  // A table may have it in the names of its rows alone.
  if (contains(words.strategy + in_small_letters(row.id), "asynctp"))
    made.set("strategy.tensor_parallel.async", true);
}

// Words that would change a step and have no key here.
void refuse_what_is_not_modelled(const StepRow& row, const RowWords& words, RowScenario& made) {
  for (const std::string_view task : {"micro-benchmark", "reward", "inference", "generation"})
    if (contains(words.task, task)) made.lack(fmt::format("the task \"{}\"", row.task));
  for (const std::string_view way : {"zero++", "mics"})
    if (contains(words.strategy, way)) {
      made.lack(fmt::format("the sharding \"{}\"", row.strategy));
      break;
    }
}

}  // namespace

bool only_updates(const StepRow& row) {
  return contains(in_small_letters(row.task), "optimizer step only") || on_host_alone(row);
}

std::string kind_of(const StepRow& row) {
  return fmt::format("{}{}{}", has_experts(row) ? "moe" : "dense", offloads(row) ? " offload" : "",
                     has_adapter(row) ? " lora" : "");
}

void write_strategy(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const RowWords words = words_of(row);
  if (on_host_alone(row)) return write_host_update(words, made);
  refuse_what_is_not_modelled(row, words, made);
  write_offload(row, made);
  write_sharding(row, words, catalog, made);
  write_parallelism(row, words, catalog, made);
  write_adapters(row, made);
  write_checkpointing(row, catalog, made);
  write_precision(row, catalog, made);
  if (compiled(words)) made.set("strategy.compile", true);
  write_experts(row, catalog, made);
}

}  // namespace stepsim
