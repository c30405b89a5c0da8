// Several replays in one test: each in a forked worker that hands back numbers.
#pragma once

#include <functional>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

std::vector<double> numbers_from_worker(const std::function<std::vector<double>()>& task);

// All that a trace observed, in one row: times, bytes and busy seconds of links, makespan.
std::vector<double> everything_in(const Trace& trace);

}  // namespace stepsim
