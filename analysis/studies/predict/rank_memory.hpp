// One rank's device memory from nothing to the end of a step that was run, and what its allocator
// is told about it.
#pragma once

#include <optional>

#include "analysis/memory_timeline.hpp"
#include "scenarios/scenario.hpp"
#include "sim/trace.hpp"
#include "workloads/program/allocator.hpp"

namespace stepsim {

struct RankMemory {
  Rank rank = 0;      // of those in the run
  Timeline timeline;  // setting up at 0 s, then the step; its words are those of the run
  AllocatingStreams streams{};
  double room = 0;  // bytes that the allocator can take from the device
  bool expandable_segments = false;
};

// Without a rank: one of the stage with least memory left, whose peak a prediction names. `run` is
// one of this scenario.
RankMemory rank_memory(const Scenario& scenario, const Run& run, std::optional<Rank> rank);

}  // namespace stepsim
