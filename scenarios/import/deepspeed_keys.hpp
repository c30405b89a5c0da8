// Keys of a DeepSpeed file that change nothing here, are not modelled, or do not exist.
#pragma once

#include <string>
#include <vector>

#include "sim/base/config.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

using Notes = std::vector<std::string>;

// Of the whole file. The types of a model are here as well: only 16 bits are modelled.
void note_unread(const Table& root, Notes& notes);
// Of the block zero_optimization.
void note_unread_of_zero(const Table& zero, const Strategy& strategy, Notes& notes);

}  // namespace stepsim
