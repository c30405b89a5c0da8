// What a step's time is made of, cause by cause: each cause is set free, alone and together with
// others, everything is replayed, and the time is divided by Shapley value.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "analysis/studies/explain/shapley.hpp"
#include "sim/ideal.hpp"
#include "sim/platform.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {

struct AttributionOptions {
  // All coalitions if they are no more than this, which is those of eight causes; else orders are
  // drawn.
  std::size_t most_replays = 256;
  // Drawn orders stop earlier, when no part's standard error is above this. 0: they do not.
  Seconds precise{};
  // This pair of orders alone, of those that the seed makes, and no cause alone.
  std::optional<std::size_t> only_pair{};
  std::uint64_t seed = 1;
  std::size_t workers = usual_workers();  // 0: in this process, which is one of them
  Progress progress{};
};

// A step that takes longer with one more cause free: freed work comes earlier and gets in the way
// of what is needed sooner.
struct Anomaly {
  Cause cause{};
  CauseSet beside;  // what was free already
  Seconds slower;
};

struct Attribution {
  Seconds step_time;
  Seconds rest;     // with every cause free
  CauseSet active;  // causes that cost anything
  bool exact = true;
  ByCause<ShapleyValue> parts{};  // seconds; they add up to step_time - rest
  // Seconds: what single pairs of orders say of the parts. Those that were drawn; of exact parts
  // the first few, to be compared with the same pairs of another step.
  std::vector<ByCause<double>> pairs;
  ByCause<Seconds> without{};      // the step's time with this cause alone free
  std::optional<Anomaly> anomaly;  // the worst
  std::size_t anomalies = 0;       // among all replays
  std::size_t replays = 0;
};

// The time with these causes free. Called in a worker, or here.
using FreeReplay = std::function<Seconds(CauseSet)>;

// `first`: a cause that stands apart from the others, if there is one.
Attribution attribute(CauseSet active, const std::optional<Beginning>& first,
                      const FreeReplay& replayed, const AttributionOptions& options);
Attribution attribute(const Platform& platform, const OpGraph& graph,
                      const AttributionOptions& options = {});

}  // namespace stepsim
