// Plays a program on a platform and says when everything happened: computations and flows are
// amounts that shrink at rates, and a rate changes only where something starts or ends.
#pragma once

#include <cstdint>

#include "sim/ideal.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// What a trace has to say: with `times` alone it is empty of links and of `ready`.
enum class Watched : std::uint8_t { everything, times };

// As if operations of the causes in `free` cost nothing: see idealised().
Trace replay(const Platform& platform, const OpGraph& graph, Watched watched = Watched::everything,
             CauseSet free = {});

}  // namespace stepsim
