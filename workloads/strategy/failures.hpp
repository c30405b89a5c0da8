// Failures break a job now and then; this says how often, and what it goes on from.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.hpp"

namespace stepsim {

// Times are means of exponential distributions where they say how often something happens. Nothing
// fails whose time is 0.
struct Failures {
  Seconds mtbf{};                  // of a node
  Seconds gpu_mtbf{};              // of a GPU, beside what its node has
  Seconds switch_mtbf{};           // of a switch, which takes the nodes below it along
  std::int64_t switch_nodes = 32;  // below a switch
  Seconds taken{};                 // until the provider takes the whole machine back
  Seconds warning{};            // that the provider gives; time enough, and a checkpoint is written
  Seconds away{};               // until there is a machine again
  Seconds queue{};              // before the job begins
  std::int64_t spares = -1;     // nodes in reserve; below 0: as many as it takes
  Seconds repair{};             // until a node that failed is back
  bool shrinks = false;         // with no spare left: goes on with fewer nodes, else it waits
  std::int64_t save_steps = 0;  // between checkpoints; 0: as often as costs least
  Seconds save{};               // training waits for a checkpoint; 0: as long as it takes
  Seconds notice{};             // until a failure is seen
  std::optional<Seconds> start;  // until steps go on; nothing: what is usual
  std::uint64_t seed = 1;

  bool any() const { return mtbf.value + gpu_mtbf.value + switch_mtbf.value + taken.value > 0; }

  friend bool operator==(const Failures&, const Failures&) = default;
};

}  // namespace stepsim
