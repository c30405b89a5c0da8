// A program of which everything takes longer.
#pragma once

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// Transfers take `factor` times as long on this platform, all else in this program: together the
// whole does.
void stretch(Platform& platform, double factor);
void stretch(OpGraph& graph, double factor);

}  // namespace stepsim
