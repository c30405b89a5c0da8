// A program of which everything takes longer.
#pragma once

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// Work, latencies and transfers all take `factor` times as long, and so does the whole.
void stretch(Platform& platform, OpGraph& graph, double factor);

}  // namespace stepsim
