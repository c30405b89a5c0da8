// This says whether predictions put layouts in the right order: rows of one model, batch and
// machine that are spread over as many GPUs in different ways. A layout that was measured more than
// once has the mean of its rows.
#pragma once

#include <span>
#include <string>
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

}  // namespace stepsim
