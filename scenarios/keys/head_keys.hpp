// The keys at the top of a scenario, those of its cluster block, and those of what was observed.
#pragma once

#include <array>
#include <span>

#include "scenarios/keys/key.hpp"
#include "scenarios/keys/observation.hpp"
#include "topology/catalog.hpp"

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

}  // namespace stepsim
