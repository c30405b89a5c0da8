// This writes a rank's memory as a snapshot of PyTorch's allocator, which
// https://pytorch.org/memory_viz opens.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/studies/predict/rank_memory.hpp"

namespace stepsim {

struct MemoryViz {
  std::string pickle;
  std::size_t requests = 0;
  double peak = 0;      // bytes that were asked for, at the most
  double reserved = 0;  // bytes of segments, at the most
};

// Writes the memory of the run that it was read from. What the step takes apart from its class,
// operation and phase becomes frames, with the mechanism as their file.
MemoryViz memory_viz(const RankMemory& memory, const OpGraph& graph);

}  // namespace stepsim
