// These rows say how much of the gap between two steps each setting carries that differs between
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/explain/setting_mixtures.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "sim/base/record.hpp"
#include "sim/ideal.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {

// This is A with one setting as in B.
struct ChangedStep {
  Seconds step_time;
  double needed = 0;  // bytes
  Fit fit = Fit::fits;
  std::optional<Cause> cause;  // whose exposed time it changes most
};

struct SettingRow {
  DifferingSetting setting;            // or several that are one choice, in its words
  Joined joined{};                     // which ones
  Seconds seconds;                     // of the gap: positive, it makes A slower
  Seconds standard_error;              // 0: exact
  Seconds alone;                       // A's step with this alone as in B
  std::optional<ChangedStep> changed;  // that step, where the row is one of the largest
};

// Rows and rest add up to the gap.
struct SettingRows {
  std::vector<SettingRow> rows;        // what makes A slower first; B, where B is slower
  std::vector<DifferingSetting> idle;  // change nothing, neither alone in A nor last of all
  Seconds rest;                        // that no setting carries
  bool exact = true;
  std::size_t replays = 0;
};

struct SettingOptions {
  std::size_t most_replays = 256;  // up to eight settings exactly; else orders are drawn
  // Drawn orders stop earlier, when no row's standard error is above this. 0: they do not.
  Seconds precise{};
  std::uint64_t seed = 1;
  std::size_t workers = usual_workers();
  Progress progress{};
};

// Returns the step's time with these settings as in B. It is called in a worker.
using MixedReplay = std::function<Seconds(const Joined&)>;

// `a` and `b` are the two steps, which are replayed already.
SettingRows setting_rows(const std::vector<DifferingSetting>& settings, Seconds a, Seconds b,
                         const MixedReplay& replayed, const SettingOptions& options);

// Writes "strategy.zero: 3 in A, 2 in B".
std::string to_text(const DifferingSetting& setting);

// Returns the rows for machines, and for pages.
Records settings_records(const SettingRows& settings);

}  // namespace stepsim
