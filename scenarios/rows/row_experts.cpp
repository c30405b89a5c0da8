// This writes how a row ran experts and adapters.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Returns the number behind the word: "LoRA r16", "rank 64", "r=8"; 0: not said.
std::int64_t rank_in(std::string_view notes) {
  for (const std::string_view mark : {"rank", "lora r", "r="}) {
    std::size_t place = notes.find(mark);
    if (place == std::string_view::npos) continue;
    place += mark.size();
    while (place < notes.size() && (notes[place] == ' ' || notes[place] == '=')) ++place;
    std::int64_t rank = 0;
    std::from_chars(notes.data() + place, notes.data() + notes.size(), rank);
    if (rank > 0) return rank;
  }
  return 0;
}

// A library that only exchanges tokens between ranks is there because ranks hold different experts.
double expert_ranks(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  if (row.expert_parallel) return *row.expert_parallel;
  const double gpus = row.gpus.value_or(1), experts = row.experts.value_or(1);
  if (contains(in_small_letters(row.framework), "deepep")) {
    double ranks = gpus / std::max(1.0, row.pipeline.value_or(1));
    while (ranks > 1 && std::fmod(experts, ranks) != 0) ranks /= 2;
    made.assume(fmt::format("experts over {:.0f} GPUs", ranks));
    return ranks;
  }
  const std::vector<std::string> must_say = known_of(catalog.vocabularies, made.stack).must_say;
  const std::string_view key = "strategy.moe.expert_parallel";
  if (gpus > 1 && holds(must_say, key)) made.lack("over how many GPUs experts are spread");
  return 1;
}

// Writes whether tokens travel while others compute: "EP overlap on", "1F1B all-to-all overlap",
// "A2A_OVERLAP=1".
void write_overlap(const std::string& said, RowScenario& made) {
  const auto any = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return says(said, word); });
  };
  if (any({"ep overlap off", "overlap off", "a2a_overlap=0", "without overlap"})) {
    made.set("strategy.moe.overlap", false);
    return;
  }
  if (!any({"ep overlap", "expert-parallel overlap", "all-to-all overlap", "1f1b overlap",
            "a2a overlap", "a2a_overlap=1", "moe overlap", "overlap_moe_expert_parallel_comm"}))
    return;
  made.set("strategy.moe.overlap", true);
  if (any({"delay_wgrad", "delayed wgrad", "delayed weight gradients", "delay wgrad"}))
    made.set("strategy.moe.delay_weight_gradients", true);
}

}  // namespace

// Returns the expert-parallel ranks if shards, copies, tensors and sequences do not share them out;
// else 1.
double repeats_rows(const StepRow& row) {
  const double ranks = row.expert_parallel.value_or(1);
  const double others = row.shards.value_or(0) * row.replicas.value_or(1) *
                        row.tensor_parallel.value_or(1) * row.context_parallel.value_or(1) *
                        row.pipeline.value_or(1);
  return ranks > 1 && others * ranks == row.gpus.value_or(1) ? ranks : 1;
}

bool has_adapter(const StepRow& row) {
  return contains(in_small_letters(row.task + row.optimizer), "lora") ||
         contains(in_small_letters(row.task), "peft");
}

void write_adapters(const StepRow& row, RowScenario& made) {
  if (!has_adapter(row)) return;
  made.set("strategy.lora", "{}");
  if (const std::int64_t rank = rank_in(in_small_letters(row.notes)); rank > 0)
    made.set("strategy.lora.rank", static_cast<double>(rank));
  if (contains(in_small_letters(row.task), "qlora")) made.set("strategy.lora.quantised", "nf4");
}

void write_experts(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  if (!has_experts(row)) return;
  const std::string notes = in_small_letters(row.notes),
                    said = notes + in_small_letters(row.framework);
  if (contains(notes, "separate parameter per expert")) made.set("strategy.moe.layout", "separate");
  const bool uneven = contains(notes, "imbalance") || contains(notes, "unbalance");
  if (contains(notes, "balance") && !uneven) made.set("strategy.moe.skew", 0.0);
  const double ranks = expert_ranks(row, catalog, made);
  if (ranks <= 1) return;
  if (made.resolved(catalog).peek("strategy.moe.kernel") == "loop") {
    made.assume("experts whole on each GPU: the model's own loop sends no tokens");
    return;
  }
  made.set("strategy.moe.expert_parallel", ranks);
  if (contains(said, "hybridep"))
    made.set("strategy.moe.dispatcher", "hybridep");
  else if (contains(said, "deepep"))
    made.set("strategy.moe.dispatcher", "deepep");
  write_overlap(in_small_letters(row.strategy + "; " + row.notes), made);
  if (says(notes, "cuda graph")) made.set("strategy.moe.graphs", true);
  if (repeats_rows(row) > 1) made.set("strategy.moe.same_rows", true);
  // Experts are divided like the layers, where that many ranks are left.
  const double tensor = row.tensor_parallel.value_or(1);
  const double in_stage = row.gpus.value_or(1) / row.pipeline.value_or(1);
  if (tensor > 1 && repeats_rows(row) <= 1 && std::fmod(in_stage, ranks * tensor) != 0)
    made.set("strategy.moe.expert_tensor_parallel", 1.0);
}

}  // namespace stepsim
