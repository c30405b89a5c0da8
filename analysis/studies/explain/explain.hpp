// An explanation says why one step takes longer than another: what each cause is exposed on both
// sides, and the differences, which add up to the gap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/critical_path.hpp"
#include "analysis/studies/explain/carriers.hpp"
#include "analysis/studies/explain/setting_rows.hpp"
#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Two figures that differ by less than this share of a step count as the same.
inline constexpr double counts_as_same = 1e-3;
// Below this share of a step a difference is rounding.
inline constexpr double counts_as_rounding = 1e-13;

// One of the two steps, and where it came from, so that it can be read again under other constants.
struct NamedStep {
  std::string label;   // as the user called it
  std::string source;  // path or name
  std::vector<Setting> settings;
  Scenario scenario;
};

struct CauseTime {
  Seconds exposed, hidden;
};

struct ExplainedSide {
  std::string label{}, title{};
  Seconds step_time{};
  double sequences = 0;  // rows of a step, all ranks
  double tokens = 0;     // of a step, without padding, all ranks
  double tokens_per_second_per_gpu = 0;
  std::uint32_t gpus = 0;
  double needed = 0, capacity = 0;  // bytes
  Fit fit = Fit::fits;
  Joules energy{};  // of a step; 0: not known
  std::size_t operations = 0;
  PlayedBy played_by{};
  ByCause<CauseTime> causes{};  // as `run` breaks the step down: with `idle` they add up to it
  Seconds idle{};
  ByCause<Seconds> without{};       // the step if one cause were free
  std::vector<PathPart> path{};     // folded
  std::optional<Range> measured{};  // s: what somebody saw a step take
};

struct ExplainRow {
  std::optional<Cause> cause{};  // nothing: idle, when the rank waits for others
  CauseTime a{}, b{};
  Seconds seconds;                // of the gap: what is exposed in A less what is in B
  Seconds a_without, b_without;   // the steps' times if it were free; of idle as they are
  std::optional<Range> range;     // of `seconds`, over draws of the constants
  std::vector<Carrier> carriers;  // of the step in which more is exposed, most important first

  bool in_a() const { return (a.exposed + a.hidden).value > 0; }
  bool in_b() const { return (b.exposed + b.hidden).value > 0; }
};
// Returns the row's name in tables and sentences: its cause, or "idle".
std::string_view name_of(const ExplainRow& row);

// The largest micro-batch of each side that fits, and what it is worth.
struct AtLimit {
  std::int64_t micro_batch_a = 0, micro_batch_b = 0;  // 0: nothing fits
  double rate_a = 0, rate_b = 0;                      // tokens per second and GPU
  bool flips = false;                                 // the other one wins there
};

// Fairness lists what the two have in common, and what makes comparing them unfair.
struct Fairness {
  std::vector<std::string> equal, unequal;
  std::vector<std::string> too_large;  // "B does not fit into memory: ..."
};

struct SideRanges {
  Range step_time;   // s
  Range throughput;  // tokens per second and GPU
  Range memory;      // bytes needed
};

// These draws say how sure all this is: both sides are written anew under the same draws of the
// constants.
struct GapDraws {
  std::uint32_t draws = 0, most = 0;         // made; allowed
  std::uint32_t a_slower = 0, b_slower = 0;  // draws in which A takes longer, or B
  std::uint32_t same_top = 0;                // draws in which the largest row is the one it is here
  Range gap{};                               // s
  SideRanges a{}, b{};
  std::vector<Mover> movers{};  // of the gap in seconds, the strongest first
};

struct Explanation {
  ExplainedSide a, b;
  std::vector<ExplainRow> rows;                          // what makes the slower one slower first
  std::optional<SettingRows> settings;                   // which settings carry the gap
  std::optional<std::pair<PathPart, PathPart>> parting;  // where the two first differ
  Fairness fairness;
  std::optional<AtLimit> at_limit;
  std::optional<GapDraws> draws;

  Seconds gap() const { return a.step_time - b.step_time; }
};

struct ExplainOptions {
  Catalogue data;
  Player player{};  // of both sides; whatever is replayed by the dozen has the own engine
  bool at_limit = false, carriers = true;
  bool settings = true;  // the gap by setting
  // Draws of the constants behind ranges: eight at a time while more could change who is slower or
  // which row is the largest. Nothing: `usual_draws`.
  std::optional<std::uint32_t> most_draws;
  SettingOptions replays{};
};

// Returns 24; 8 where replays are long; 0 where they are many, as in a GRPO step.
std::uint32_t usual_draws(const Explanation& explanation, const Scenario& a, const Scenario& b);

// Never in a process that has replayed: it asks workers, and those need a fresh engine.
Explanation explain(const NamedStep& a, const NamedStep& b, const ExplainOptions& options);

// Writes the seconds without their sign.
std::string size_of(Seconds seconds);
// Writes "with free gather_bytes A would take 52 s instead of 115 s: the gap would be 7 s instead
// of 70 s"; "" for the row of idle.
std::string counterfactual_text(const Explanation& explanation, const ExplainRow& row);
// Writes "B wins at equal settings, but A does when each uses the largest micro-batch that fits:
// ..."
std::string at_limit_text(const Explanation& explanation);

// Writes "A is slower in all of 8 draws of the constants, and optimizer is the largest row in 7".
std::string draws_text(const Explanation& explanation);

// Returns the rows of two sides, which add up to the difference of the steps.
std::vector<ExplainRow> gap_rows(const ExplainedSide& a, const ExplainedSide& b);

}  // namespace stepsim
