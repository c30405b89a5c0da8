// A breakdown says where a step's time goes: every instant of one rank belongs to one cause, so the
// rows add up.
#pragma once

#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct BreakdownRow {
  Cause cause{};
  Seconds exposed;  // nothing more urgent ran on the rank at that time
  Seconds hidden;   // the cause was busy, but behind something else
};

struct Breakdown {
  std::vector<BreakdownRow> rows;  // largest exposed first, zero rows left out
  Seconds idle;                    // nothing ran on this rank
};

// Returns the rank that others wait for: the first of those whose kernels take longest, to a
// thousandth.
Rank busiest_rank(const OpGraph& graph, const Trace& trace);

// Breaks the rank's time down. The device's kernels come first, then collectives and copies, then
// the host: a gather is exposed while the device stands still, a launch while nothing else runs
// either. What a pipeline stage waits for others is `pipeline_bubble`, which no operation has.
Breakdown break_down(const OpGraph& graph, const Trace& trace, Rank rank);

}  // namespace stepsim
