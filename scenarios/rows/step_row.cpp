#include "scenarios/rows/step_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/error.hpp"

namespace stepsim {
namespace {

constexpr std::array texts{
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

constexpr std::array numbers{
    std::pair{"nodes", &StepRow::nodes},
    std::pair{"gpus", &StepRow::gpus},
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

constexpr double largest = 1e15;

Cell number_in(std::string_view cell, std::string_view column, StepRow& row) {
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc() && rest == cell.data() + cell.size() && value >= 0 && value < largest)
    return value;
  row.unreadable.push_back(fmt::format("{}: expected a number, found \"{}\"", column, cell));
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}  // namespace

std::vector<StepRow> step_rows(const CsvTable& table) {
  if (!table.column("id"))
    throw UserError(
        {{table.file, 1, "id", "the column is missing" + did_you_mean("id", table.columns)}});
  std::vector<StepRow> rows;
  for (const CsvTable::Row& line : table.rows) {
    StepRow& row = rows.emplace_back();
    row.line = line.line;
    row.id = std::string(trimmed(table.cell(line, "id")));
    if (row.id.empty()) row.id = fmt::format("line {}", line.line);
    for (const auto& [column, member] : texts)
      row.*member = std::string(trimmed(table.cell(line, column)));
    for (const auto& [column, member] : numbers)
      row.*member = number_in(trimmed(table.cell(line, column)), column, row);
  }
  return rows;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace stepsim
