// This writes in how many bits a row kept what, and which kernels and which optimizer it ran.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Writes which kernel ran, where a row names it.
void write_attention(const StepRow& row, RowScenario& made) {
  const std::string named = in_small_letters(row.id + row.source + row.framework);
  const std::string notes = in_small_letters(row.notes);
  if (contains(named, "fa3") || contains(named, "flash_attention_3") ||
      says(notes, "flashattention-3") || says(notes, "flash attention 3"))
    made.set("strategy.attention", "flash3");
  else if (says(notes, "eager attention"))
    made.set("strategy.attention", "eager");
}

// Other than bf16 or fp16 with fp32 sums: of those that the catalogue has.
void write_products(const StepRow& row, const RowWords& words, const RowCatalog& catalog,
                    RowScenario& made) {
  constexpr std::array<std::string_view, 6> narrow{"fp8", "float8", "fp4", "fp6", "int8", "int4"};
  const bool other = std::ranges::any_of(
      narrow, [&](std::string_view type) { return says(words.precision, type); });
  const bool wide = words.precision.starts_with("fp32") || words.precision.starts_with("tf32") ||
                    words.precision.starts_with("float32");
  if (!other && !wide) return;
  const std::string name = best_name(catalog.precisions, words.precision);
  if (wide || name.empty()) {
    made.lack(fmt::format("the precision \"{}\"", row.precision));
    return;
  }
  made.set("strategy.precision", name);
  if (holds(catalog.gathered, name) && is_fsdp(words) && row.stage.value_or(3) == 3) {
    made.set("strategy.fsdp.narrow_gather", true);
    made.assume("gathers in 8 bits");
  }
}

void refuse_optimizer(const StepRow& row, const RowWords& words, RowScenario& made) {
  if (words.optimizer.empty() || contains(words.optimizer, "adam") ||
      contains(words.optimizer, "muon") || contains(words.optimizer, "moments") ||
      contains(words.optimizer, "distributed"))
    return;
  made.lack(fmt::format("the optimizer \"{}\"", row.optimizer));
}

}  // namespace

void write_precision(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const RowWords words = words_of(row);
  const std::string& word = words.optimizer;
  write_products(row, words, catalog, made);
  refuse_optimizer(row, words, made);
  // The moments are in 16 bits as well without fp32 parameters.
  if (contains(words.precision, "pure bf16")) made.set("strategy.master_weights", false);
  if (contains(word, "bf16 moments") || contains(word, "bf16 states") ||
      contains(word, "bf16 exp_avg"))
    made.set("strategy.moment_dtype", "bf16");
  if (says(words.notes, "chunked ce")) made.set("strategy.cross_entropy", "chunks");
  write_attention(row, made);
  if (contains(words.notes + words.optimizer, "optimizer in backward"))
    made.set("strategy.update_in_backward", true);
  if (contains(word, "muon")) made.set("strategy.optimizer", "muon");
  if (contains(word, "8bit") || contains(word, "8-bit"))
    made.set("strategy.optimizer", contains(word, "torch") ? "adamw_torch_8bit" : "adamw_8bit");
  if (contains(word, "4bit") || contains(word, "4-bit"))
    made.set("strategy.optimizer", "adamw_4bit");
}

}  // namespace stepsim
