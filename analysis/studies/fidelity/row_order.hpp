// This says whether predictions put layouts in the right order: rows of one model, batch and
// machine that are spread over as many GPUs in different ways. A layout that was measured more than
// once has the mean of its rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

inline constexpr double tellable = 0.05;  // measured times closer than that count as equal

struct OrderedGroup {
  std::string model;
  double gpus = 0, batch = 0;  // sequences of a step
  std::size_t rows = 0;
  std::size_t pairs = 0, right = 0;  // pairs whose measured times differ tellably
  std::string picked{}, best{};      // the fastest as predicted, and as measured
  double lost = 0;  // measured time of the picked one over that of the best, less one
};
// Returns groups of at least two layouts; `rows` and `predicted` are in the same order.
std::vector<OrderedGroup> ordered_groups(std::span<const StepRow> rows,
                                         std::span<const PredictedRow> predicted);

struct OrderSummary {
  std::size_t groups = 0, pairs = 0, right = 0;
  double worst_lost = 0;
};
OrderSummary summary_of(std::span<const OrderedGroup> groups);

// This says whether a prediction changes as the measurement does, from one row of a series to the
// next: more GPUs, longer rows, a larger model, another micro-batch, with recomputation or without.
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
