// This finds one side of an explanation: its own figures, its time cause by cause, and what it
// waits for.
#pragma once

#include <tuple>
#include <vector>

#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

struct ExplainedStep {
  ExplainedSide side{};           // all but the times without causes
  std::vector<PathPart> parts{};  // of its path, layer by layer

  // A worker sends these figures; the rest follows from the scenario.
  static auto fields(auto& self) {
    return std::tie(self.side.step_time, self.side.tokens_per_second_per_gpu, self.side.needed,
                    self.side.capacity, self.side.fit, self.side.energy, self.side.operations,
                    self.side.idle, self.side.causes, self.side.played_by, self.parts);
  }
};

// Replays once, in a worker.
ExplainedStep observe(const NamedStep& step, const Player& player = {});
// These are the figures that draws ask of a side. draw_figures() replays in this process, so only a
// worker may call it.
struct DrawnFigures {
  Seconds step_time;
  double tokens_per_second_per_gpu = 0, needed = 0;
  ByCause<Seconds> exposed{};
  Seconds idle;
};
DrawnFigures draw_figures(const NamedStep& step);
// Replays once, in this process, so only a worker may call it. The causes in `free` cost nothing.
Seconds step_time_of(const Scenario& scenario, CauseSet free = {});
// Returns the step's time with each of the causes that the side has free, one after the other; for
// other causes it is the step's time as it is.
ByCause<Seconds> times_without(const Scenario& scenario, const ExplainedSide& side,
                               const SettingOptions& options);

}  // namespace stepsim
