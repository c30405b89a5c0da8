// Bytes over a step, and the moment when there are most.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct MemoryPeak {
  double bytes = 0;
  double time = 0;    // s; in program order: the operation's number
  std::string phase;  // of the operation that brought it about
  std::string name;
  std::vector<std::pair<std::string, double>> classes;  // at the peak, largest first
};

// Of one rank's device memory: what the program allocates, beside what is always there.
MemoryPeak peak_memory(const OpGraph& graph, const Trace& trace, Rank rank);

// Without a replay: effects in program order, as if nothing ran ahead.
MemoryPeak peak_memory_in_order(const OpGraph& graph, Rank rank);

}  // namespace stepsim
