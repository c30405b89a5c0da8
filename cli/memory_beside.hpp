// This prints predicted memory beside the snapshot of a real run's allocator.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/fidelity/memory_comparison.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// Reads the snapshot; throws UserError when nothing in it can be compared.
MemoryComparison load_comparison(const Catalogue& data, const Scenario& scenario,
                                 const Footprint& footprint, const std::string& snapshot);

// The answer in two lines, and what it is made of.
std::string sentence_of(const MemoryComparison& comparison);
std::string comparison_text(const MemoryComparison& comparison);
Record comparison_record(const std::optional<MemoryComparison>& comparison);
// Returns a comparison with everything in it that there may be.
MemoryComparison comparison_sample();

}  // namespace stepsim
