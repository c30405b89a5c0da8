// This takes a timeline of sums apart into what a rank asked its allocator for, one by one.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "analysis/memory_timeline.hpp"

namespace stepsim {

inline constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

struct Request {
  std::size_t taken = 0;      // by which change of the timeline
  std::size_t given = never;  // by which it was given back
  double bytes = 0;
};

// Returns the requests of device memory in the order in which they were taken. What is given back
// is the request of its class that is as large, of the same layer and micro-batch where there are
// several; where none is, the newest of its class, and one that is given back in parts was as many.
std::vector<Request> requests_of(const OpGraph& graph, const Timeline& timeline);

}  // namespace stepsim
