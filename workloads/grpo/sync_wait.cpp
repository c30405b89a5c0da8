#include "workloads/grpo/sync_wait.hpp"

#include <algorithm>

namespace stepsim {

double wait_for_engines(SyncProtocol protocol, const SyncCost& cost,
                        std::span<const Engine> engines) {
  double slowest = 0, calls = 0;
  for (const Engine& engine : engines) {
    const double iteration = engine.iteration();
    slowest = std::max(slowest, iteration);
    if (cost.window.value > 0)
      calls = std::max(calls, engine.iterations_left() * iteration / cost.window.value);
  }
  if (protocol != SyncProtocol::v1) return cost.calls > 0 ? slowest : 0;
  return std::min(calls, cost.calls) * cost.busy.value;
}

double slowed_by(const SyncCost& cost, double sending) {
  const double working = cost.calls * cost.window.value;
  return working > 0 ? std::max(1.0, sending / working) : 0;
}

}  // namespace stepsim
