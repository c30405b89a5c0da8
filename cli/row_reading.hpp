// Tables of published steps, GRPO runs and engines, read together.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/fidelity/rl_rows.hpp"
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

}  // namespace stepsim
