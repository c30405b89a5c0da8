// Goodput is what is left of a run's time when nodes fail now and then: steps that need not be done
// again.
#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace stepsim {

struct RunTimeline {
  double step = 0;            // s
  double save = 0;            // s, of a checkpoint
  double between = 0;         // s, mean, from one failure of the job to the next
  double restart = 0;         // s, until it is seen and steps go on
  std::int64_t interval = 0;  // steps between checkpoints; 0: the one that loses least
  std::uint64_t seed = 1;
};

// These are shares of the wall time; they add up to one.
struct Goodput {
  double useful = 1, saving = 0, lost = 0, down = 0;
  std::int64_t interval = 0;
  double failures = 0;  // that were simulated
};

// Plays the run from failure to failure, each drawn; a job may fail again while it starts.
Goodput goodput_of(const RunTimeline& run);

}  // namespace stepsim
