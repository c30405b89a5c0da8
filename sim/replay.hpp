// Plays a program on a platform and says when everything happened: computations and flows are
// amounts that shrink at rates, and a rate changes only where something starts or ends.
#pragma once

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

Trace replay(const Platform& platform, const OpGraph& graph);

}  // namespace stepsim
