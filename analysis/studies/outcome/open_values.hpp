// An answer may hang on values that no file says: this finds how much, and what holds otherwise.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

// A value that was taken, and the step at either end of what it may be.
struct OpenValue {
  Assumption assumption;
  double low = 0, high = 0;  // s of a step, or tokens per second and GPU; both 0: not tried
  bool rate = false;         // the latter, where the step takes as long whatever the value is
  double swing = 0;          // of that figure, as a share

  bool tried() const { return high > 0; }
};

// Returns what was taken, what moves the answer most first. Ends of ranges are tried where the step
// is short enough for two more replays each.
std::vector<OpenValue> open_values(const NextStepQuestion& question);

// A step that does not fit might under another value of a key that no file says.
struct OtherVerdict {
  std::vector<Setting> settings;
  std::string key;    // "sharding": what is not said
  std::string taken;  // "each GPU has everything"
  std::string other;  // "ZeRO-3"
  Fit fit = Fit::oom;
  double needed = 0;  // bytes of a GPU
};

// Returns the values with which the verdict is another one, each alone; where none is enough all of
// them together; nothing: it hangs on none. Memory alone is judged, nothing is replayed.
std::vector<OtherVerdict> other_verdicts(const NextStepQuestion& question);

}  // namespace stepsim
