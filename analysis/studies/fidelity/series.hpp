// This says whether a prediction changes as the measurement does, from one row of a series to the
// next: more GPUs, longer rows, a larger model, another micro-batch, with recomputation or without.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

enum class SeriesAxis : std::uint8_t { gpus, sequence, model, micro_batch, checkpointing };
inline constexpr std::array<std::string_view, 5> axis_names{"GPUs", "sequence", "model",
                                                            "micro-batch", "checkpointing"};

struct SeriesStep {
  SeriesAxis axis{};
  std::string from, to;       // ids
  double measured_ratio = 1;  // of tokens per second and GPU
  double predicted_ratio = 1;

  double error() const { return predicted_ratio / measured_ratio - 1; }
};
// Returns the rows that differ along one axis alone (and, but for the micro-batch itself, in how
// the batch is cut), each beside its neighbour. `rows` and `predicted` are in the same order.
std::vector<SeriesStep> series_steps(std::span<const StepRow> rows,
                                     std::span<const PredictedRow> predicted);

struct AxisErrors {
  SeriesAxis axis{};
  std::size_t steps = 0;
  double median = 0, p90 = 0;
};
std::vector<AxisErrors> errors_by_axis(std::span<const SeriesStep> steps);

}  // namespace stepsim
