#include "scenarios/rows/expressed_row.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

// Tokens of a step, where the row gives a rate and a time, or a utilisation whose count is known.
double tokens_per_step(const StepRow& row) {
  if (!row.step) return 0;
  const double seconds = *row.step * row.gpus.value_or(1);  // of all GPUs
  if (row.tokens) return *row.tokens * *row.step;
  if (row.tokens_per_gpu) return *row.tokens_per_gpu * seconds;
  const double flops = counted_flops_per_token(row);
  if (flops <= 0) return 0;
  return (row.tflops ? *row.tflops * 1e12 : row.mfu.value_or(0) / 100 * counted_peak(row)) *
         seconds / flops;
}

// A batch that follows from printed rates is rounded as they are.
bool whole(double value, bool rounded) {
  return value >= 0.5 && std::abs(value - std::round(value)) < (rounded ? 0.02 * value : 1e-6);
}

// Micro-batch and accumulation from each other and from the batch of the step.
void write_batch(const StepRow& row, double copies, RowText& text) {
  Cell batch = row.global_batch;
  const double sequence = row.sequence.value_or(0);
  const bool rounded = !batch;
  if (!batch && sequence > 0 && tokens_per_step(row) > 0)
    batch = std::round(tokens_per_step(row) / sequence);
  Cell micro = row.micro_batch, accumulation = row.accumulation;
  if (!micro && accumulation && batch) micro = *batch / (copies * *accumulation);
  if (!micro) {
    text.lack("the micro-batch");
    return;
  }
  // All rows of a batch go through a pipeline one after the other, however they are called.
  const bool piped = row.pipeline.value_or(1) > 1;
  if (piped && batch) accumulation.reset();
  if (piped && !batch && !accumulation) text.lack("how many micro-batches go through the pipeline");
  if (!accumulation && batch) accumulation = *batch / (copies * *micro);
  if (!accumulation && row.step && contains(lower_case(row.notes), "accumulation not stated"))
    text.lack("how often gradients are accumulated");
  if (!accumulation) {
    accumulation = 1;
    text.assume("no accumulation");
  }
  const double rows = copies * *micro * *accumulation;
  const bool differs = batch && std::abs(rows - *batch) > (rounded ? 0.02 : 1e-6) * *batch;
  if (!whole(*micro, rounded) || !whole(*accumulation, rounded) || differs) {
    text.lack(
        fmt::format("a batch that its parts multiply to: {:g} rows over {:g} copies with "
                    "micro-batch {:g}{}",
                    batch.value_or(0), copies, *micro,
                    differs ? fmt::format(", {:g} times", *accumulation) : ""));
    return;
  }
  text.job += fmt::format("  micro_batch: {:.0f}\n  gradient_accumulation: {:.0f}\n",
                          std::round(*micro), std::round(*accumulation));
}

void write_job(const StepRow& row, RowText& text) {
  if (only_updates(row)) {
    text.job = "job: {sequence: 1, only_update: true}\n";
    return;
  }
  if (!row.sequence || *row.sequence < 1) {
    text.lack("the sequence length");
    return;
  }
  text.job = fmt::format("job:\n  sequence: {:.0f}\n", *row.sequence);
  const double split = row.tensor_parallel.value_or(1) * row.pipeline.value_or(1) *
                       row.context_parallel.value_or(1) * repeats_rows(row);
  write_batch(row, std::max(1.0, row.gpus.value_or(1) / std::max(1.0, split)), text);
}

// Ways to compute more again than a scenario does: single modules, where Megatron has experts, and
// whole layers.
std::vector<std::string> lighter_ways(const std::string& scenario, const std::string& stack) {
  std::vector<std::string> ways;
  const bool none = contains(scenario, "checkpointing: none");
  if (none && stack == "megatron" && contains(scenario, "  moe:"))
    ways.emplace_back("selective: layernorm, moe_act");
  if (none || contains(scenario, "checkpointing: selective")) ways.emplace_back("full");
  return ways;
}

}  // namespace

ExpressedRow express(const StepRow& given, const RowCatalog& catalog) {
  RowText text;
  StepRow row = with_recipes(given, catalog.recipes, text.assumed);
  const RowCatalog::ModelSize size = catalog.size_of(same_model(catalog, row.model));
  if (!row.experts && size.experts > 0) row.experts = size.experts;
  if (!row.layers && size.layers > 0) row.layers = size.layers;
  text.missing = row.unreadable;
  write_model(row, catalog, text);
  write_cluster(row, catalog, text);
  write_stack(row, catalog, text);
  write_job(row, text);
  write_strategy(row, catalog, text);
  const std::string of = fmt::format("{}{}", text.stack.empty() ? row.framework : text.stack,
                                     text.gpu.empty() ? "" : " " + text.gpu);
  ExpressedRow made{row.id,
                    fmt::format("{} {}", kind_of(row), of),
                    text.stack,
                    "",
                    std::move(text.missing),
                    std::move(text.assumed),
                    {}};
  if (made.expressed())
    made.scenario = fmt::format("name: {}\nfamily: {}\n{}{}stack: {}\n{}{}", quoted_text(row.id),
                                quoted_text(made.family), text.model, text.cluster, text.stack,
                                text.job, text.strategy);
  if (!given.checkpointing.empty()) return made;
  for (const std::string& way : lighter_ways(made.scenario, made.stack)) {
    StepRow other = given;
    other.checkpointing = way;
    made.lighter.push_back({way, express(other, catalog).scenario});
  }
  return made;
}

}  // namespace stepsim
