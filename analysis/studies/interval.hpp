// How sure a prediction is, given what is known about the constants that it rests on.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "scenarios/scenario.hpp"
#include "sim/ideal.hpp"

namespace stepsim {

struct Interval {
  Seconds low;                // one in ten draws is below
  Seconds high;               // one in ten is above
  std::uint32_t samples = 0;  // that could run
};

struct IntervalQuestion {
  std::string data;
  std::string scenario;  // path or name
  std::span<const Setting> settings;
  std::uint32_t samples = 8;
  std::uint64_t seed = 1;
  CauseSet free = {};  // causes that cost nothing
};

// Of the step time: every constant is drawn from its range, all at once, once per sample; each
// sample is built and replayed in a worker of its own.
Interval step_time_interval(const IntervalQuestion& question);

}  // namespace stepsim
