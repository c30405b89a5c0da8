// How a row ran experts and adapters.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

// "LoRA r16", "rank 64", "r=8": the number behind the word; 0: not said.
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

// Benchmarks with an even router say so. How unevenly others spread tokens hangs on data and
// training, so what their stack usually does has a wide range.
void write_skew(const StepRow& row, const StackHabits::Skew& usual, RowText& text) {
  const std::string notes = lower_case(row.notes);
  const bool uneven = contains(notes, "imbalance") || contains(notes, "unbalance");
  if (contains(notes, "balance") && !uneven) return;
  text.strategy +=
      fmt::format("    skew: {{value: {}, low: {}, high: {}, grade: guess, source: {}}}\n",
                  usual.stated, usual.least, usual.most, quoted_text(usual.source));
  text.assume(fmt::format("tokens of experts that differ by {:g} of their mean", usual.stated));
}

// A library that only exchanges tokens between ranks is there because ranks hold different experts.
double expert_ranks(const StepRow& row, RowText& text) {
  if (row.expert_parallel) {
    return *row.expert_parallel;
  }
  const double gpus = row.gpus.value_or(1), experts = row.experts.value_or(1);
  if (contains(lower_case(row.framework), "deepep")) {
    double ranks = gpus / std::max(1.0, row.pipeline.value_or(1));
    while (ranks > 1 && std::fmod(experts, ranks) != 0) ranks /= 2;
    text.assume(fmt::format("experts over {:.0f} GPUs", ranks));
    return ranks;
  }
  if (contains(lower_case(row.framework), "megatron") && gpus > 1)
    text.lack("over how many GPUs experts are spread");
  return 1;
}

}  // namespace

// Those that are not shared out among shards, copies, tensors and sequences.
double repeats_rows(const StepRow& row) {
  const double ranks = row.expert_parallel.value_or(1);
  const double others = row.shards.value_or(0) * row.replicas.value_or(1) *
                        row.tensor_parallel.value_or(1) * row.context_parallel.value_or(1) *
                        row.pipeline.value_or(1);
  return ranks > 1 && others * ranks == row.gpus.value_or(1) ? ranks : 1;
}

bool has_adapter(const StepRow& row) {
  return contains(lower_case(row.task + row.optimizer), "lora") ||
         contains(lower_case(row.task), "peft");
}

void write_adapters(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  if (!has_adapter(row)) return;
  const StackHabits usual = catalog.habits_of(text.stack);
  const std::string notes = lower_case(row.notes);
  const std::int64_t said = rank_in(notes), rank = said > 0 ? said : usual.lora_rank;
  if (said == 0) text.assume(fmt::format("adapters of rank {}", rank));
  text.assume(fmt::format("adapters beside {} matrices",
                          usual.lora_targets == "linear" ? "dense" : usual.lora_targets));
  text.strategy += fmt::format("  lora: {{rank: {}, targets: {}{}}}\n", rank, usual.lora_targets,
                               contains(lower_case(row.task), "qlora") ? ", quantised: nf4" : "");
}

void write_experts(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  if (!has_experts(row)) return;
  const StackHabits usual = catalog.habits_of(text.stack);
  const std::string& kernel = usual.experts;
  text.strategy += fmt::format("  moe:\n    kernel: {}\n", kernel);
  const std::string notes = lower_case(row.notes);
  if (contains(notes, "separate parameter per expert"))
    text.strategy += "    layout: separate\n";
  else if (kernel == "padded")
    text.strategy += "    layout: fused\n";
  const double ranks = expert_ranks(row, text);
  const bool same = repeats_rows(row) > 1;
  const std::string said = notes + lower_case(row.framework);
  if (ranks > 1 && (contains(said, "deepep") || contains(said, "hybridep")))
    text.strategy += "    dispatcher: deepep\n";
  if (ranks > 1 && says(notes, "cuda graph")) text.strategy += "    graphs: true\n";
  const double tensor = row.tensor_parallel.value_or(1);
  if (ranks > 1) {
    text.strategy += fmt::format("    expert_parallel: {:.0f}\n", ranks);
    // Megatron divides experts like the layers, where that many ranks are left.
    const double in_stage = row.gpus.value_or(1) / row.pipeline.value_or(1);
    const bool divides =
        std::fmod(in_stage, ranks * tensor) == 0 && !contains(notes, "experts whole");
    if (tensor > 1 && !same)
      text.strategy += fmt::format("    expert_tensor_parallel: {:.0f}\n", divides ? tensor : 1);
    if (same) text.strategy += "    same_rows: true\n";
  }
  // KempnerForge divides attention only.
  if (tensor > 1 && contains(lower_case(row.framework), "kempner"))
    text.strategy += "    expert_tensor_parallel: 1\n";
  if (ranks > 1 || kernel == "padded") write_skew(row, usual.skew, text);
}

}  // namespace stepsim
