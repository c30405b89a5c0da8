// The keys of a scenario, as `stepsim list keys` prints them.
#pragma once

#include <string>

#include "cli/options.hpp"

namespace stepsim {

// Writes a table for a person, JSON, a template to copy, or the page of the docs.
std::string keys_listed(const Options& options);

}  // namespace stepsim
