// A stack's own code makes this of single operators, in place of the counts that all stacks share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

// Returns the `operators` block of a stack's file: where the shared file has the count
// ("norm.bytes"), and the constant that takes its place, as YAML.
std::vector<std::pair<std::string, std::string>> operators_of_stack(const Table& stack);

}  // namespace stepsim
