// Plays a program on a platform and says when everything happened: computations and flows are
// amounts that shrink at rates, and a rate changes only where something starts or ends.
#pragma once

#include <cstdint>

#include "sim/engine/occupancy.hpp"
#include "sim/ideal.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// This says what a trace has to hold: with `times` alone it is empty of links and of `ready`, with
// `makespan` of all columns.
enum class Watched : std::uint8_t { everything, times, makespan };

// A program that is played more than once. Both parts have to outlive it.
class Replayer {
 public:
  Replayer(const Platform& platform, const OpGraph& graph);
  // Plays the program as if operations of the causes in `free` cost nothing: see idealised().
  Trace play(Watched watched, CauseSet free = {}) const;

 private:
  const Platform& platform_;
  const OpGraph& graph_;
  Occupancy occupancy_;
  Waits waits_;
};

Trace replay(const Platform& platform, const OpGraph& graph, Watched watched = Watched::everything);

}  // namespace stepsim
