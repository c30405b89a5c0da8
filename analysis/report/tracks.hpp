// A track is what a stream of a rank did, as spans that can be drawn: operations as they are, or
// where there are too many of them, runs of short ones together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct CauseShare {
  Cause cause{};
  double seconds = 0;

  friend bool operator==(const CauseShare&, const CauseShare&) = default;
};

// A span is one operation, or several that follow each other.
struct Span {
  double start = 0, finish = 0;
  std::uint32_t count = 1;
  OpId longest{};             // of its operations
  std::uint32_t first_share;  // of its track's list
  std::uint32_t shares = 1;   // busy seconds by cause, in the order of the enumeration
};

struct Track {
  Rank rank = 0;
  Stream stream{};
  std::vector<Span> spans;
  std::vector<CauseShare> shares;

  std::span<const CauseShare> shares_of(const Span& span) const {
    return std::span(shares).subspan(span.first_share, span.shares);
  }
};

struct Tracks {
  std::vector<Track> list;  // by rank, then by stream; those on which something took time
  double resolution = 0;    // s: shorter operations may stand in a span with others; 0: none does
  std::size_t operations = 0;

  std::size_t spans() const;
};

// An operation of several ranks stands on the track of each of them. At most `most_spans` spans,
// unless there are more tracks than that.
Tracks tracks_of(const Run& run, std::size_t most_spans);

}  // namespace stepsim
