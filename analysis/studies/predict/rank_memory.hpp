// One rank's device memory from nothing to the end of a step that was run, and what its allocator
// is told about it.
#pragma once

#include <optional>

#include "analysis/studies/predict/footprint.hpp"
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

// Returns the memory of the rank; without one, of a rank of the stage with least memory left, whose
// peak a prediction names. `run` is one of this scenario.
RankMemory rank_memory(const Scenario& scenario, const Run& run, std::optional<Rank> rank);

// This is the memory of a step in program order, without setting up, of the stage that the
// footprint is of.
struct StepMemory {
  MemoryReading reading;
  Resident resident;  // of it what is there all along
};
StepMemory memory_of_step(const Scenario& scenario, const Footprint& footprint);

// Bytes that the allocator has of the device, at the most, when two steps have run in the order of
// the program: states of the optimizer come between them, where the first has left room.
double reserved_in_order(const Scenario& scenario, const Footprint& footprint);

}  // namespace stepsim
