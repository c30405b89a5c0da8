// This predicts, row by row, tables of published GRPO steps, and of what inference engines reach by
// themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"
#include "scenarios/rows/engine_row.hpp"
#include "scenarios/rows/step_row.hpp"

namespace stepsim {

struct RowSampling {
  std::uint32_t samples = 0;  // draws of the constants for each row; 0: no interval
  std::uint64_t seed = 1;
};
std::vector<PredictedRow> predict_grpo_rows(const Catalogue& data, std::span<const StepRow> rows,
                                            const RowSampling& sampling);
// The error of an engine is that of the time that it takes.
std::vector<PredictedRow> predict_rows(const Catalogue& data, std::span<const EngineRow> rows,
                                       const RowSampling& sampling);

}  // namespace stepsim
