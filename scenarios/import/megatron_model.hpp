// The model that Megatron's arguments describe by its widths.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/import/mapped_source.hpp"

namespace stepsim {

// As a config.json says it, in one line of YAML. What such a file cannot say is noted as not
// modelled, and what is missing as a problem. `longest`: of rows that the job has at the least.
std::string described_model(MappedSource& source, std::int64_t longest = 1);

}  // namespace stepsim
