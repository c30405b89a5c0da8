// This finds how far steps stray from their predictions beyond what the ranges of all other
// constants say, so that an interval of 80 % holds eight of ten.
#pragma once

#include <span>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

struct StretchRow {
  const PredictedRow* row = nullptr;  // with draws in which the stack's `unexplained` was one
  double weight = 1;
};

// The interval of the step error when `unexplained` is drawn from that range, too.
Range stretched_interval(const PredictedRow& row, const Range& stretch);

// The narrowest range about one with which a tenth of the rows and of one more to come lies below
// its interval, and a tenth above. Where the ranges of other constants hold more, this one has no
// width.
Range fit_stretch(std::span<const StretchRow> rows);

}  // namespace stepsim
