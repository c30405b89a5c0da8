// Utilisation is a figure of a definition: to compare one, tokens are counted as its source does.
#include "scenarios/rows/expressed_row.hpp"
#include "scenarios/rows/machine_cells.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

double value(const Cell& cell) {
  return cell.value_or(0);
}

// 4 numbers per width and key: scores and values, forward; three times that with the backward pass.
double attention_per_token(const StepRow& row) {
  return 12 * value(row.layers) * value(row.hidden) * value(row.sequence);
}

// Counts forward, backward and recomputation of a GPT as arXiv 2104.04473 does.
double gpt_with_recomputation_per_token(const StepRow& row) {
  const double h = value(row.hidden), l = value(row.layers);
  const double vocabulary = row.vocabulary.value_or(51200);
  if (h <= 0 || l <= 0) return 0;
  return 96 * l * h * h * (1 + value(row.sequence) / (6 * h) + vocabulary / (16 * l * h));
}

// Counts the same without recomputation as arXiv 2205.05198 does.
double gpt_per_token(const StepRow& row) {
  const double h = value(row.hidden), l = value(row.layers);
  const double vocabulary = row.vocabulary.value_or(51200);
  if (h <= 0) return 0;
  return 72 * l * h * h * (1 + value(row.sequence) / (6 * h) + vocabulary / (12 * l * h));
}

}  // namespace

double counted_flops_per_token(const StepRow& row) {
  const std::string code = row.flops_definition;
  const double parameters = 1e9 * value(row.parameters);
  const double embedding = value(row.vocabulary) * value(row.hidden);
  if (value(row.layers) <= 0 || value(row.sequence) <= 0) return 0;
  if (code == "MPT" && parameters > 0) return 6 * parameters + attention_per_token(row);
  if (contains(code, "2205.05198")) return gpt_per_token(row);
  if (contains(code, "includes full recompute")) return gpt_with_recomputation_per_token(row);
  if (contains(code, "includes recompute"))
    return gpt_with_recomputation_per_token(row) * (row.checkpointing == "full" ? 1 : 0.75);
  if (code == "TT" && parameters > 0 && embedding > 0)
    return 6 * (parameters - embedding) + attention_per_token(row);
  if (contains(code, "NANOGPT") && parameters > 0) return 6 * parameters + attention_per_token(row);
  return 0;
}

double counted_peak(const StepRow& row, const RowCatalog& catalog) {
  const RowCatalog::NodeSize* node =
      named_node(catalog, {row.hardware, row.interconnect, row.gpu_memory}).node;
  return node == nullptr ? 0 : node->peak;
}

// Returns whether the device's tool shows the figure, and not the framework.
static bool shown_by_device(const StepRow& row) {
  const std::string unit = in_small_letters(row.memory_unit);
  return contains(unit, "nvidia-smi") || contains(unit, "device tool");
}

// Returns whether the source does not say by whom it is counted; W&B is told what the framework
// logs.
static bool said_elsewhere(const StepRow& row) {
  const std::string unit = in_small_letters(row.memory_unit);
  return contains(unit, "kind not stated") && !contains(unit, "w&b");
}

double measured_memory(const StepRow& row, const Stack::MemoryLog& log) {
  const bool logged = !shown_by_device(row) && !said_elsewhere(row);
  const bool binary = contains(row.memory_unit, "GiB") || (log.binary && logged);
  return value(row.memory) * (binary ? 0x1p30 : 1e9);
}

MemoryKind measured_kind(const StepRow& row, const Stack::MemoryLog& log) {
  const std::string unit = in_small_letters(row.memory_unit);
  const bool allocated = contains(unit, "allocated") || contains(unit, "active");
  const bool reserved = contains(unit, "reserved");
  if (shown_by_device(row)) return MemoryKind::device;
  if (said_elsewhere(row)) return MemoryKind::unsaid;
  if (allocated != reserved) return allocated ? MemoryKind::allocated : MemoryKind::reserved;
  return log.kind;
}

bool memory_is_bound(const StepRow& row) {
  return contains(in_small_letters(row.memory_unit), "script header") ||
         (row.gpu_memory && value(row.memory) >= *row.gpu_memory);
}

}  // namespace stepsim
