// `validate --rows T.csv --export DIR` writes rows of measured tables as scenario files.
#pragma once

#include <span>
#include <string>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

// Writes one file for each predicted row, named after it; what was assumed stands above it as
// comments. `stepsim run` of that file predicts what `validate --rows` did. Returns how many there
// are.
std::size_t export_rows(const std::string& folder, std::span<const PredictedRow> rows);

}  // namespace stepsim
