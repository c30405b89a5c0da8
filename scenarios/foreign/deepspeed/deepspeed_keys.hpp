// Keys of a DeepSpeed file that change nothing here, are not modelled, or do not exist.
#pragma once

#include <string>
#include <vector>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

using Notes = std::vector<std::string>;

// Returns whether neither bf16 nor fp16 is on, though the file speaks of them; says of fp16 whether
// it is.
bool trains_in_32_bits(const Table& root, bool& half);
// Reads what is data of the file: deepspeed.yaml.
Document deepspeed_facts(const Catalogue& data);
// Notes what is not read of the whole file, by those facts.
void note_unread(const Table& facts, const Table& root, Notes& notes);
// Notes what is not read of the block zero_optimization.
void note_unread_of_zero(const Table& facts, const Table& zero, const Strategy& strategy,
                         Notes& notes);

}  // namespace stepsim
