// This says what a weight sync costs, and what it waits for in engines that are at work.
#pragma once

#include <span>

#include "workloads/grpo/engine.hpp"
#include "workloads/grpo/grpo.hpp"

namespace stepsim {

// This is the cost without waiting for engines; the wait for iterations under way comes on top.
struct SyncCost {
  Seconds gather;    // before anything is sent, while the engines generate
  Seconds send;      // the rest: gathers between sends, calls, broadcasts, loading
  double calls = 0;  // one after the other
  Seconds busy;      // more for each of them while engines have work
  Seconds window;    // of a call: engines go on with theirs, until the broadcast stops them
  Seconds pause;     // engines are put to sleep and woken
};

// Returns how long a sync waits for engines. They begin nothing new while weights change, so they
// run dry; from then on calls are quick. With one call for all tensors the wait is the iteration
// under way.
double wait_for_engines(SyncProtocol protocol, const SyncCost& cost,
                        std::span<const Engine> engines);

// Returns by how much an iteration takes longer when engines work between broadcasts only.
double slowed_by(const SyncCost& cost, double sending);

}  // namespace stepsim
