// What a weight sync costs, and what it waits for in engines that are at work.
#pragma once

#include <span>

#include "workloads/grpo/engine.hpp"
#include "workloads/grpo/grpo.hpp"

namespace stepsim {

// Without waiting for engines; the wait for iterations under way comes on top.
struct SyncCost {
  Seconds gather;    // before anything is sent, while the engines generate
  Seconds send;      // the rest: gathers between sends, calls, broadcasts, loading
  double calls = 0;  // one after the other
  Seconds busy;      // more for each of them while engines have work
  Seconds window;    // of a call: engines go on with theirs, until the broadcast stops them
  Seconds pause;     // engines are put to sleep and woken
};

// Nothing new is begun while weights change, so engines run dry; from then on calls are quick. With
// one call for all tensors it is the iteration under way.
double wait_for_engines(SyncProtocol protocol, const SyncCost& cost,
                        std::span<const Engine> engines);

// By how much an iteration takes longer when engines work between broadcasts only.
double slowed_by(const SyncCost& cost, double sending);

}  // namespace stepsim
