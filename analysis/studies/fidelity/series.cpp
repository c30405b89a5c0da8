#include "analysis/studies/fidelity/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/lists.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

double value_on(const StepRow& row, SeriesAxis axis) {
  constexpr std::array<std::string_view, axis_names.size()> columns{
      "gpus", "seq_len", "params_total_B", "micro_batch", "act_ckpt"};
  const std::string_view column = columns[static_cast<std::size_t>(axis)];
  if (axis == SeriesAxis::checkpointing) return row.said(column) == "none" ? 1 : 2;
  return row.number(column);
}

// All that stays the same along a series.
std::string fixed(const StepRow& row, SeriesAxis axis) {
  std::vector<std::string_view> columns{"source",  "hardware", "framework", "precision",
                                        "compile", "task",     "offload"};
  if (axis != SeriesAxis::gpus) columns.emplace_back("gpus");
  if (axis != SeriesAxis::sequence) columns.emplace_back("seq_len");
  if (axis != SeriesAxis::model) append(columns, std::vector<std::string_view>{"model", "layers"});
  columns.emplace_back(axis == SeriesAxis::checkpointing ? "micro_batch" : "act_ckpt");
  std::string key = fmt::format("{}", std::max(1.0, row.number("tp")));
  for (const std::string_view column : columns) key += "|" + row.said(column);
  return key;
}

}  // namespace

std::vector<SeriesStep> series_steps(std::span<const StepRow> rows,
                                     std::span<const PredictedRow> predicted) {
  std::vector<SeriesStep> steps;
  for (std::size_t a = 0; a < axis_names.size(); ++a) {
    const auto axis = static_cast<SeriesAxis>(a);
    std::map<std::string, std::map<double, std::size_t>> series;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (predicted[i].predicted() && predicted[i].timed && value_on(rows[i], axis) > 0)
        series[fixed(rows[i], axis)].try_emplace(value_on(rows[i], axis), i);
    for (const auto& [key, places] : series) {
      const PredictedRow* before = nullptr;
      for (const auto& [value, place] : places) {
        const PredictedRow& row = predicted[place];
        if (before != nullptr)
          steps.push_back({axis, before->id, row.id,
                           row.measured_tokens_per_gpu / before->measured_tokens_per_gpu,
                           row.tokens_per_gpu / before->tokens_per_gpu});
        before = &row;
      }
    }
  }
  return steps;
}

std::vector<AxisErrors> errors_by_axis(std::span<const SeriesStep> steps) {
  std::vector<AxisErrors> result;
  for (std::size_t a = 0; a < axis_names.size(); ++a) {
    std::vector<double> sizes;
    for (const SeriesStep& step : steps)
      if (step.axis == static_cast<SeriesAxis>(a)) sizes.push_back(std::abs(step.error()));
    std::ranges::sort(sizes);
    result.push_back(
        {static_cast<SeriesAxis>(a), sizes.size(), quantile(sizes, 0.5), quantile(sizes, 0.9)});
  }
  return result;
}

}  // namespace stepsim
