// One side of an explanation: its own figures, its time divided among causes, and what it waits
// for.
#pragma once

#include <tuple>
#include <vector>

#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

struct ExplainedStep {
  ExplainedSide side{};           // all but its attribution
  std::vector<PathPart> parts{};  // of its path, layer by layer

  // What a worker sees; the rest follows from the scenario.
  static auto fields(auto& self) {
    return std::tie(self.side.step_time, self.side.tokens_per_second_per_gpu, self.side.needed,
                    self.side.capacity, self.side.fit, self.side.energy, self.side.operations,
                    self.side.idle, self.side.causes, self.side.played_by, self.parts);
  }
};

// Replays once, in a worker.
ExplainedStep observe(const NamedStep& step, const Player& player = {});
// What draws ask of a side. Replays here: only in a worker.
struct DrawnFigures {
  double tokens_per_second_per_gpu = 0, needed = 0;
  Attribution attribution{};
};
DrawnFigures draw_figures(const NamedStep& step, const AttributionOptions& options);
// Replays once, here: only in a worker.
Seconds step_time_of(const Scenario& scenario);
// Replays it with causes free, alone and together.
Attribution attribute(const Scenario& scenario, const AttributionOptions& options);

}  // namespace stepsim
