// These are the keys of the job block of a GRPO scenario: open-instruct's names and, where not said
// otherwise, its defaults.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "scenarios/keys/key.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Returns the blocks in the order of reading: a default may follow from what stands above it.
std::span<const Block<Grpo>> grpo_blocks();
// Returns DeepSpeed's switches, which stand in the job block and go before the strategy block.
const Block<Strategy>& grpo_switches();
// Keys that are known and change neither time nor memory.
std::span<const std::string_view> grpo_keys_without_effect();

// Reads "[2, 2]"; what is no whole number from `low` on is noted.
std::vector<std::int64_t> whole_numbers(const Table& table, std::string_view key, std::int64_t low);

}  // namespace stepsim
