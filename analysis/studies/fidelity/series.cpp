#include "analysis/studies/fidelity/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

double value_on(const StepRow& row, SeriesAxis axis) {
  switch (axis) {
    case SeriesAxis::gpus:
      return row.gpus.value_or(0);
    case SeriesAxis::sequence:
      return row.sequence.value_or(0);
    case SeriesAxis::model:
      return row.parameters.value_or(0);
    case SeriesAxis::micro_batch:
      return row.micro_batch.value_or(0);
    case SeriesAxis::checkpointing:
      return row.checkpointing == "none" ? 1 : 2;
  }
  return 0;
}

// All that stays the same along a series.
std::string fixed(const StepRow& row, SeriesAxis axis) {
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", row.source, row.hardware, row.framework, row.precision,
                  row.compile, row.task, row.offload, row.tensor_parallel.value_or(1));
  if (axis != SeriesAxis::gpus && axis != SeriesAxis::model)
    key += fmt::format("|g{}", row.gpus.value_or(0));
  if (axis != SeriesAxis::sequence) key += fmt::format("|s{}", row.sequence.value_or(0));
  if (axis != SeriesAxis::model)
    key += fmt::format("|m{}|{}", row.model, row.layers.value_or(0));
  else
    key += fmt::format("|g{}", row.gpus.value_or(0));
  if (axis != SeriesAxis::checkpointing) key += "|c" + row.checkpointing;
  if (axis == SeriesAxis::checkpointing) key += fmt::format("|b{}", row.micro_batch.value_or(0));
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
