// These write what to do next, as `run` and `memory` say it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analysis/studies/outcome/next_steps.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// A table of at most so many changes, each alone, or that none of those that were tried is faster.
std::string faster_text(const FasterSteps& faster, std::size_t most = 100);
// The changes that make it fit: single ones, pairs, more nodes; or that none is known.
std::string fitting_text(const FittingSteps& fitting, std::size_t most = 100);

// Null: it was not asked for.
Record faster_record(const std::optional<FasterSteps>& faster);
Record faster_sample();
Records fitting_records(const FittingSteps& fitting);
Record fitting_record(const std::optional<FittingSteps>& fitting);

}  // namespace stepsim
