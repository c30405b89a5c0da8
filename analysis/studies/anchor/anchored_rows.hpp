// This anchors measured rows on one another: how far off are predictions of a source's runs, once
// one of them was measured?
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"
#include "scenarios/rows/step_row.hpp"

namespace stepsim {

struct AnchoredFamily {
  std::string name;  // the rows' family, and their source
  std::size_t rows = 0;
  double median = 0, p90 = 0;  // of the absolute errors, as the catalogue has it
  double anchored_median = 0, anchored_p90 = 0;
  double held = 0, anchored_held = 0;  // shares of measured times in their intervals
  double width = 0;                    // of an interval over that of the catalogue, in the median
};

// This few rows of one source, machine and framework say nothing.
inline constexpr std::size_t least_rows_of_source = 4;

// Takes rows with draws of `draws_before()`: each row of a source, machine, framework and family is
// anchored on each other one in turn. The last one is all of them.
std::vector<AnchoredFamily> anchored_families(std::span<const StepRow> rows,
                                              std::span<const PredictedRow> predicted);

}  // namespace stepsim
