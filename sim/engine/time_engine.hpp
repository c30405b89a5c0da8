// A TimeEngine is whatever passes time for a program; this is the interface between both.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// A ReadyLoop starts work on an engine and hears from it when that work has ended. After everything
// that ends at one moment the engine calls settle() once. Nothing may depend on the order in which
// things end at the same moment.
template <class Engine>
concept TimeEngine =
    requires(Engine& engine, const Engine& seen, Rank rank, Seconds seconds, Bytes bytes, OpId op,
             PatternId pattern, std::uint32_t number, std::size_t state, bool slow) {
      // Returns the seconds since the start.
      { seen.now() } -> std::convertible_to<double>;
      // Calls timer_ended(op) after the delay.
      engine.set_timer(seconds, op);
      // Calls computed(op) when the device has worked so long at its full speed.
      engine.compute(rank, seconds, op);
      // Sends that flow of that round of the pattern, and calls sent(op, flow) at its end.
      engine.send(pattern, number, number, bytes, op);
      // Lets the device compute at that one of Occupancy::rates from now on.
      engine.set_compute(rank, state);
      // Takes a share of the links that drive the device's collectives for compute, or gives it
      // back.
      engine.slow_engines(rank, slow);
    };

// An engine with these functions is told of every operation when it begins and when it ends, such
// as one that meters power.
template <class Engine>
concept HearsOperations = requires(Engine& engine, const Op& op) {
  engine.begins(op);
  engine.ends(op);
};

}  // namespace stepsim
