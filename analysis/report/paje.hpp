// This file writes a run as a trace in the Paje format, which PajeNG, ViTE and other readers of
// SimGrid's traces open.
#pragma once

#include <cstddef>

#include "analysis/report/arrows.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Containers are the platform, its nodes, and in these GPUs, the hosts that launch on them, and
// links, by the names of the run's platform. Each stream of a GPU or host has states; memory and
// bandwidths are variables; arrows are links. States and ends of arrows are at most `most_events`,
// as in trace_events().
TraceText paje_trace(const Run& run, std::size_t most_events);

}  // namespace stepsim
