#include "scenarios/rows/step_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::array step_texts{
    std::pair{"ref_id", &StepRow::refers},
    std::pair{"source", &StepRow::source},
    std::pair{"hardware", &StepRow::hardware},
    std::pair{"interconnect", &StepRow::interconnect},
    std::pair{"framework", &StepRow::framework},
    std::pair{"model", &StepRow::model},
    std::pair{"task", &StepRow::task},
    std::pair{"strategy", &StepRow::strategy},
    std::pair{"offload", &StepRow::offload},
    std::pair{"act_ckpt", &StepRow::checkpointing},
    std::pair{"precision", &StepRow::precision},
    std::pair{"optimizer", &StepRow::optimizer},
    std::pair{"compile", &StepRow::compile},
    std::pair{"flops_def", &StepRow::flops_definition},
    std::pair{"mem_unit", &StepRow::memory_unit},
    std::pair{"oom", &StepRow::oom},
    std::pair{"derived_fields", &StepRow::derived},
    std::pair{"notes", &StepRow::notes},
};

constexpr std::array step_numbers{
    std::pair{"nodes", &StepRow::nodes},
    std::pair{"gpus", &StepRow::gpus},
    std::pair{"gpu_mem_GB", &StepRow::gpu_memory},
    std::pair{"params_total_B", &StepRow::parameters},
    std::pair{"layers", &StepRow::layers},
    std::pair{"hidden", &StepRow::hidden},
    std::pair{"heads", &StepRow::heads},
    std::pair{"kv_heads", &StepRow::kv_heads},
    std::pair{"ffn", &StepRow::ffn},
    std::pair{"vocab", &StepRow::vocabulary},
    std::pair{"experts", &StepRow::experts},
    std::pair{"topk", &StepRow::per_token},
    std::pair{"expert_ffn", &StepRow::expert_width},
    std::pair{"seq_len", &StepRow::sequence},
    std::pair{"zero_stage", &StepRow::stage},
    std::pair{"dp_shard", &StepRow::shards},
    std::pair{"dp_replicate", &StepRow::replicas},
    std::pair{"tp", &StepRow::tensor_parallel},
    std::pair{"pp", &StepRow::pipeline},
    std::pair{"vpp", &StepRow::interleave},
    std::pair{"ep", &StepRow::expert_parallel},
    std::pair{"cp", &StepRow::context_parallel},
    std::pair{"micro_batch", &StepRow::micro_batch},
    std::pair{"grad_accum", &StepRow::accumulation},
    std::pair{"global_batch_seqs", &StepRow::global_batch},
    std::pair{"tok_s_gpu", &StepRow::tokens_per_gpu},
    std::pair{"tok_s_total", &StepRow::tokens},
    std::pair{"step_s", &StepRow::step},
    std::pair{"tflops_gpu", &StepRow::tflops},
    std::pair{"mfu_pct", &StepRow::mfu},
    std::pair{"hfu_pct", &StepRow::hfu},
    std::pair{"mem_GB", &StepRow::memory},
};

constexpr std::array measured{&StepRow::tokens_per_gpu, &StepRow::tokens, &StepRow::step,
                              &StepRow::tflops,         &StepRow::mfu,    &StepRow::hfu,
                              &StepRow::memory};

}  // namespace

std::vector<StepRow> step_rows(const CsvTable& table) {
  return rows_from<StepRow>(table, step_texts, step_numbers);
}

void complete_references(std::vector<StepRow>& rows) {
  constexpr std::array of_measurement{&StepRow::refers, &StepRow::memory_unit, &StepRow::oom};
  std::map<std::string, const StepRow*> by_id;
  std::vector<std::string> told;  // ids of rows that say nothing new
  for (const StepRow& row : rows)
    if (row.refers.empty()) by_id.emplace(row.id, &row);
  for (StepRow& row : rows) {
    const auto found = by_id.find(row.refers);
    if (row.refers.empty() || found == by_id.end()) continue;
    const StepRow& other = *found->second;
    for (const auto& [column, member] : step_texts)
      if ((row.*member).empty() && !holds(of_measurement, member)) row.*member = other.*member;
    for (const auto& [column, member] : step_numbers)
      if (!(row.*member) && !holds(measured, member)) row.*member = other.*member;
    // If both print a figure of their run, it is one.
    bool same = false;
    for (const auto member : measured)
      if (row.*member && row.*member == other.*member) {
        (row.*member).reset();
        same = true;
      }
    if (same && !has_figure(row)) told.push_back(row.id);
  }
  std::erase_if(rows,
                [&](const StepRow& row) { return !row.refers.empty() && holds(told, row.id); });
}

bool has_figure(const StepRow& row) {
  return !row.oom.empty() ||
         std::ranges::any_of(measured, [&](const auto member) { return bool(row.*member); });
}

std::vector<std::string> step_columns() {
  return columns_of(step_texts, step_numbers);
}

bool is_column(std::string_view column) {
  const auto named = [&](const auto& entry) { return column == entry.first; };
  return std::ranges::any_of(step_texts, named) || std::ranges::any_of(step_numbers, named);
}

std::string cell_of(const StepRow& row, std::string_view column) {
  for (const auto& [name, member] : step_texts)
    if (name == column) return row.*member;
  for (const auto& [name, member] : step_numbers)
    if (name == column && row.*member) return fmt::format("{:g}", *(row.*member));
  return "";
}

bool fill_in(StepRow& row, std::string_view column, const std::string& text) {
  const std::string said = cell_of(row, column);
  if (!said.empty() && !said.starts_with("not stated")) return false;
  put_in(row, column, text);
  return true;
}

void put_in(StepRow& row, std::string_view column, const std::string& text) {
  for (const auto& [name, member] : step_texts)
    if (name == column) row.*member = text;
  for (const auto& [name, member] : step_numbers)
    if (name == column) row.*member = std::stod(text);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace stepsim
