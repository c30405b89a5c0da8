// Plays a program by SimGrid: what `replay` is held against. Nothing but tests and benchmarks asks
// it.
#pragma once

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Once per process: SimGrid keeps its clock and its callbacks for the life of the process. A second
// call throws std::logic_error.
Trace simgrid_replay(const Platform& platform, const OpGraph& graph);

}  // namespace stepsim
