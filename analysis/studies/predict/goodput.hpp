// Goodput is what is left of a job's time when parts of the machine fail now and then: steps that
// need not be done again.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/strategy/failures.hpp"

namespace stepsim {

// One kind of thing that ends a job's steps: a node that fails, or a provider who wants the machine
// back.
struct Break {
  double between = 0;      // s, mean, of all such things together
  std::int64_t nodes = 1;  // are lost each time; 0: the whole machine, and the job waits for it
  double away = 0;         // s, until they are back
  double warning = 0;      // s
};

struct JobCourse {
  double step = 0;     // s
  double steps = 0;    // of the job; 0: it has no end, and only shares of the time are asked for
  double save = 0;     // s, that training waits for a checkpoint
  double behind = 0;   // s, beyond that, until the checkpoint is safe
  double begin = 0;    // s, before the first step
  double restart = 0;  // s, from a failure until steps go on
  std::int64_t interval = 0;  // steps between checkpoints; 0: the one that loses least
  std::vector<Break> breaks{};
  std::int64_t nodes = 1;    // that the job is made for
  std::int64_t spares = -1;  // in reserve; below 0: as many as it takes
  bool shrinks = false;      // it goes on with fewer nodes
  std::uint64_t seed = 1;
};

// The shares are those of the wall time; they add up to one.
struct Goodput {
  double useful = 1, saving = 0, lost = 0, down = 0;
  double waiting = 0;  // for nodes, for the machine, in the queue
  double slower = 0;   // steps took longer on fewer nodes
  std::int64_t interval = 0;
  double failures = 0;    // of the job, in the mean; of one without end, those that were simulated
  double between = 0;     // s, mean, from one failure to the next
  Seconds wall{};         // mean; 0: the job has no end
  Seconds low{}, high{};  // eight of ten jobs end between these
};

// Returns what is known of a job from its failures alone.
JobCourse course_of(const Failures& failures, const Cluster& cluster);

// Plays jobs from failure to failure, each drawn, and says what they had in the mean. A job may
// fail again while it starts. All intervals are compared under the same luck.
Goodput goodput_of(const JobCourse& job);

}  // namespace stepsim
