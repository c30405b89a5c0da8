// Megatron's arguments describe the model by its widths; this writes it.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// Returns the model as a config.json says it, in one line of YAML. What such a file cannot say is
// noted as not modelled, and what is missing as a problem. `longest` is the length that the job's
// rows have at the least.
std::string described_model(MappedSource& source, std::int64_t longest = 1);

}  // namespace stepsim
