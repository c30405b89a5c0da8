// This finds whether a run repeats itself in its middle, so that more of the same need not be
// replayed.
// A shorter version of a program lacks some operations in the middle of each stream. If what runs
// during a stretch of time ran in the same way one such stretch earlier, the state at both ends of
// it is one and the same: unfinished work, and what is left of it. A program with still more in the
// middle then goes through this stretch again and again.
#pragma once

#include <optional>

#include "sim/trace.hpp"

namespace stepsim {

// The last such stretch before anything begins that the shorter program has no counterpart for, if
// there is one, and memory is the same at both of its ends. `more` is left to the caller.
std::optional<Repeat> find_repeat(const OpGraph& shorter, const OpGraph& graph, const Trace& trace);

// Returns whether more of what the shorter program lacks needs no more memory in program order,
// too.
bool holds_no_more(const OpGraph& shorter, const OpGraph& graph);

}  // namespace stepsim
