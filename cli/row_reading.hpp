// Tables of published steps, GRPO runs and engines, read together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/rl_rows.hpp"
#include "analysis/studies/fidelity/row_validation.hpp"
#include "scenarios/rows/step_row.hpp"

namespace stepsim {

struct RowTables {
  std::vector<StepRow> steps, grpo;
  std::vector<EngineRow> engines;
  std::vector<std::string> notes;  // columns that are nearly read, rows that measure nothing
};
// Throws UserError when a file is empty or two rows have one id.
RowTables read_row_tables(const Catalogue& data, const std::vector<std::string>& files);

// Returns whether rows of that family may be in these tables.
bool holds_family(const RowTables& tables, std::string_view family);

// Writes one file for each predicted row, named after it; what was assumed stands above it as
// comments. `stepsim run` of that file predicts what `validate --rows` did. Returns how many there
// are.
std::size_t export_rows(const std::string& folder, std::span<const PredictedRow> rows);

}  // namespace stepsim
