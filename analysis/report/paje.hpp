// This file writes a run as a trace in the Paje format, which PajeNG, ViTE and other readers of
// SimGrid's traces open.
#pragma once

#include <cstddef>
#include <string>

#include "sim/trace.hpp"

namespace stepsim {

struct PajeTrace {
  std::string text;
  std::size_t operations = 0;  // one for each rank that took part
  std::size_t states = 0;      // what they stand in
  double resolution = 0;       // s: shorter operations may share a state; 0: every one has its own
};

// Containers are the platform, its nodes, and in these GPUs, the hosts that launch on them, and
// links, by the names of the run's platform. Each stream of a GPU or host has states; memory and
// bandwidths are variables; arrows are links. States and ends of arrows are at most `most_events`,
// as in trace_events().
PajeTrace paje_trace(const Run& run, std::size_t most_events);

}  // namespace stepsim
