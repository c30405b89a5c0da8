// These are the tables of all blocks of a scenario.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "scenarios/keys/key.hpp"
#include "scenarios/keys/observation.hpp"
#include "topology/catalog.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// A scenario begins with these keys.
inline constexpr std::array scenario_heads{
    "name",      "note",      "model",  "cluster", "stack",  "job",      "strategy", "measured",
    "estimated", "constants", "family", "engine",  "recipe", "scenario", "releases"};

// Names, and what is free text: none of them is kept by a block.
struct Head {};
std::span<const Key<Head>> head_keys();

std::span<const Block<ClusterChoice>> cluster_blocks();

std::span<const Block<Observation>> observation_blocks();

// Returns the block of `method` alone, which decides on all other keys.
const Block<Job>& method_block();

// Returns the blocks of sft and dpo in the order of reading: a default may follow from what stands
// above it.
std::span<const Block<Job>> job_blocks();

// Returns the blocks in the order of reading: a default may follow from what stands above it.
std::span<const Block<Grpo>> grpo_blocks();
// Returns DeepSpeed's switches, which stand in the job block and go before the strategy block.
const Block<Strategy>& grpo_switches();
// Keys that are known and change neither time nor memory.
std::span<const std::string_view> grpo_keys_without_effect();

// Reads "[2, 2]"; what is no whole number from `low` on is noted.
std::vector<std::int64_t> whole_numbers(const Table& table, std::string_view key, std::int64_t low);

// Returns the blocks in the order of reading: a default may follow from what stands above it.
std::span<const Block<Strategy>> strategy_blocks();

}  // namespace stepsim
