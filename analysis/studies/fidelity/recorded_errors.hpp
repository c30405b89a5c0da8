// This records the errors of each family when somebody last looked at them, so that none grows
// unnoticed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

// Writes one line a family, "all" left out: whatever changes it changes a family.
std::string recorded_errors(std::span<const RowFamily> families);

struct ErrorChange {
  std::string family;
  std::string what;  // "the median error of the step time", ...
  std::string before, now;
  bool worse = false;
};
// Returns what is not as the table says, by more than a tenth of a percent point. Throws UserError
// when the table lacks a column or a cell is no number.
std::vector<ErrorChange> changes_since(const CsvTable& recorded,
                                       std::span<const RowFamily> families);

}  // namespace stepsim
