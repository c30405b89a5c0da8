// The writers of traces for other programs show a run as spans, and arrows from one to another.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/report/tracks.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Rounds to whole nanoseconds, so that a span ends exactly where the next one begins.
inline double nanoseconds(double seconds) {
  return std::round(seconds * 1e9);
}

// An arrow leads to an operation from the last that each rank's host did before it, and to a
// collective from all work that it waited for.
struct Arrow {
  OpId from{}, to{};
  Rank from_rank = 0, to_rank = 0;
};

// This is a run in the format of another program, and how much of it is told apart there.
struct TraceText {
  std::string text;
  std::size_t operations = 0;  // one for each rank that took part
  std::size_t spans = 0;       // which hold them
  double resolution = 0;       // s: shorter operations may share a span; 0: every one has its own
};

struct TracksAndArrows {
  Tracks tracks;
  std::vector<Arrow> arrows;  // between operations that have a span of their own
};

// Spans and ends of arrows are at most `most_events`, unless there are more tracks than that.
TracksAndArrows tracks_and_arrows(const Run& run, std::size_t most_events);

}  // namespace stepsim
