// Whether a run repeats itself in its middle, so that more of the same need not be replayed.
//
// Of a program there is a shorter version: some operations in the middle of each stream are not
// there. If what runs during a stretch of time ran in the same way one such stretch earlier, the
// state at both ends of it is one and the same: unfinished work, and what is left of it. A program
// with still more in the middle then goes through this stretch again and again.
#pragma once

#include <optional>

#include "sim/trace.hpp"

namespace stepsim {

// The last such stretch before anything begins that the shorter program has no counterpart for, if
// there is one, and memory is the same at both of its ends. `more` is left to the caller.
std::optional<Repeat> find_repeat(const OpGraph& shorter, const OpGraph& graph, const Trace& trace);

// Whether in program order, too, more of what the shorter program lacks needs no more memory.
bool holds_no_more(const OpGraph& shorter, const OpGraph& graph);

}  // namespace stepsim
