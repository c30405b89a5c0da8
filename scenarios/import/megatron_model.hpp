// The model that Megatron's arguments describe by its widths.
#pragma once

#include <string>

#include "scenarios/import/mapped_source.hpp"

namespace stepsim {

// As a config.json says it, in one line of YAML. What such a file cannot say is noted as not
// modelled, and what is missing as a problem.
std::string described_model(MappedSource& source);

}  // namespace stepsim
