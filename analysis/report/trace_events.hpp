// This writes a run as Trace Event JSON, which Perfetto and Chrome's tracing page open.
#pragma once

#include <cstddef>

#include "analysis/report/arrows.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Writes a process per rank with a thread per stream, counters of memory by class, a process of
// links with their use, and arrows from the host to what it launched and from work to the
// collectives that waited for it. Slices and ends of arrows are at most `most_events`: where there
// would be more, short operations that follow each other share a slice, and have no arrows.
TraceText trace_events(const Run& run, std::size_t most_events);

}  // namespace stepsim
