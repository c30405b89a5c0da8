// Plays a program on a platform and says when everything happened.
#pragma once

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Once per process: the engine below keeps its clock and its callbacks for the life of the process.
// A second call throws std::logic_error; studies fork a worker per replay.
Trace replay(const Platform& platform, const OpGraph& graph);

}  // namespace stepsim
