#include "scenarios/rows/expressed_row.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// Tokens of a step, where the row gives a rate and a time, or a utilisation whose count is known.
double tokens_per_step(const StepRow& row, const RowCatalog& catalog) {
  if (!row.step) return 0;
  const double seconds = *row.step * row.gpus.value_or(1);  // of all GPUs
  if (row.tokens) return *row.tokens * *row.step;
  if (row.tokens_per_gpu) return *row.tokens_per_gpu * seconds;
  const double flops = counted_flops_per_token(row);
  if (flops <= 0) return 0;
  return (row.tflops ? *row.tflops * 1e12
                     : row.mfu.value_or(0) / 100 * counted_peak(row, catalog)) *
         seconds / flops;
}

// A batch that follows from printed rates is rounded as they are: these are means over some steps.
constexpr double rounding = 0.04;
bool whole(double value, bool rounded) {
  return value >= 0.5 && std::abs(value - std::round(value)) < (rounded ? rounding * value : 1e-6);
}

// Writes micro-batch and accumulation from each other and from the batch of the step.
void write_batch(const StepRow& row, const RowCatalog& catalog, double copies, RowScenario& made) {
  Cell batch = row.global_batch;
  const double sequence = row.sequence.value_or(0);
  const bool rounded = !batch;
  if (!batch && sequence > 0 && tokens_per_step(row, catalog) > 0)
    batch = std::round(tokens_per_step(row, catalog) / sequence);
  Cell micro = row.micro_batch, accumulation = row.accumulation;
  if (!micro && accumulation && batch) micro = *batch / (copies * *accumulation);
  if (!micro) {
    made.lack("the micro-batch");
    return;
  }
  // All rows of a batch go through a pipeline one after the other, however they are called.
  const bool piped = row.pipeline.value_or(1) > 1;
  if (piped && batch) accumulation.reset();
  if (piped && !batch && !accumulation) made.lack("how many micro-batches go through the pipeline");
  if (!accumulation && batch) accumulation = *batch / (copies * *micro);
  if (!accumulation && row.step && contains(in_small_letters(row.notes), "accumulation not stated"))
    made.lack("how often gradients are accumulated");
  if (!accumulation) {
    accumulation = 1;
    made.assume("no accumulation");
  }
  // Nobody runs a pipeline for one piece: what a rank gets is cut into as many as there are stages.
  const double stages = row.pipeline.value_or(1);
  if (piped && *accumulation == 1 && *micro >= stages) {
    made.assume("a micro-batch for each stage of the pipeline");
    accumulation = stages;
    micro = *micro / stages;
  }
  const double rows = copies * std::round(*micro) * std::round(*accumulation);
  const bool differs = batch && std::abs(rows - *batch) > (rounded ? rounding : 1e-6) * *batch;
  if (!whole(*micro, rounded) || !whole(*accumulation, rounded) || differs) {
    made.lack(
        fmt::format("a batch that its parts multiply to: {:g} rows over {:g} copies with "
                    "micro-batch {:g}{}",
                    batch.value_or(0), copies, *micro,
                    differs ? fmt::format(", {:g} times", *accumulation) : ""));
    return;
  }
  made.set("job.micro_batch", std::round(*micro));
  made.set("job.gradient_accumulation", std::round(*accumulation));
}

void write_job(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  if (only_updates(row)) {
    made.set("job.sequence", 1.0);
    made.set("job.only_update", true);
    return;
  }
  if (!row.sequence || *row.sequence < 1) {
    made.lack("the sequence length");
    return;
  }
  made.set("job.sequence", *row.sequence);
  if (contains(in_small_letters(row.task), "dpo")) made.set("job.method", "dpo");
  const double split = row.tensor_parallel.value_or(1) * row.pipeline.value_or(1) *
                       row.context_parallel.value_or(1) * repeats_rows(row);
  write_batch(row, catalog, std::max(1.0, row.gpus.value_or(1) / std::max(1.0, split)), made);
}

// Ways to compute more again than a scenario does, as a cell says them: single modules, where a
// stack's runs of models with experts begin with these, and whole layers.
std::vector<std::string> lighter_ways(const RowScenario& made, bool experts,
                                      const RowCatalog& catalog) {
  std::vector<std::string> ways;
  const std::string now = made.resolved(catalog).peek("strategy.checkpointing").value_or("full");
  const std::vector<std::string> first =
      known_of(catalog.vocabularies, made.stack).experts_recompute;
  if (now == "none" && experts && !first.empty())
    ways.push_back(fmt::format("selective: {}", fmt::join(first, ", ")));
  if (now == "none" || now == "selective") ways.emplace_back("full");
  return ways;
}

}  // namespace

ExpressedRow expressed(RowScenario made, std::string family) {
  ExpressedRow row{made.document.file(), std::move(family), made.stack};
  if (made.missing.empty()) {
    row.run = made.text();
    Document named = parse_document("{}", row.id);
    named.set("name", quoted_text(row.id));
    named.set("family", quoted_text(row.family));
    row.scenario = named.canonical() + row.run;
  }
  row.missing = std::move(made.missing);
  row.assumed = std::move(made.assumed);
  return row;
}

ExpressedRow express(const StepRow& given, const RowCatalog& catalog) {
  StepRow row = given;
  const RowCatalog::ModelSize size = known_of(catalog.models, same_model(catalog, row.model));
  if (!row.experts && size.experts > 0) row.experts = size.experts;
  if (!row.layers && size.layers > 0) row.layers = size.layers;
  RowScenario made(row.id);
  made.missing = row.unreadable;
  find_recipes(row, catalog, made);
  write_model(row, catalog, made);
  write_cluster(row, catalog, made);
  write_stack(row, catalog, made);
  write_recipes(made);
  write_job(row, catalog, made);
  write_strategy(row, catalog, made);
  name_defaults(row, catalog, made);
  std::vector<std::string> ways;
  if (given.checkpointing.empty()) ways = lighter_ways(made, has_experts(row), catalog);
  const std::string of = fmt::format("{}{}", made.stack.empty() ? row.framework : made.stack,
                                     made.gpu.empty() ? "" : " " + made.gpu);
  ExpressedRow result = expressed(std::move(made), fmt::format("{} {}", kind_of(row), of));
  for (const std::string& way : ways) {
    StepRow other = given;
    other.checkpointing = way;
    result.lighter.push_back({way, express(other, catalog).scenario});
  }
  return result;
}

}  // namespace stepsim
