// This finds the best plans of a space: bounds in closed form put most of them aside, the rest are
// replayed.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/studies/outcome/metrics.hpp"
#include "analysis/studies/plan/plan_space.hpp"
#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/sweep/sweep_table.hpp"
#include "sim/base/member_words.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"
#include "workloads/step/least_step.hpp"

namespace stepsim {

// The goal is what is to be least: the time of a step, that times its GPUs, the memory of a GPU, or
// the energy of a step.
enum class PlanGoal : std::uint8_t { time, cost, memory, energy };
inline constexpr auto plan_goal_names = words_through<PlanGoal::energy>();

// No plan comes to this.
inline constexpr double unreached = std::numeric_limits<double>::infinity();

// This is how far a search is.
struct SoFar {
  std::optional<std::size_t> plan;  // the best of those that were replayed
  double goal = unreached;          // that this one comes to
  double least = unreached;         // no plan that is left comes below; 0: that is not known yet
  std::size_t replayed = 0;
  double seconds = 0;  // since it began
};

struct PlanSearch {
  Catalogue data;
  PlanGoal goal = PlanGoal::time;
  std::size_t top = 5;
  std::uint32_t samples = 8;  // draws of the constants, the same for all of the best
  double free = 0;            // share of a GPU's memory that has to be left
  bool prune = true;          // else every plan is replayed
  std::string journal{};      // where replayed plans are kept; empty: nowhere
  std::size_t workers = usual_workers();
  Progress progress{};  // of replays; how many there will be at most is known as they go on
  // The search ends when so many seconds have passed since `begun`, with draws in the last quarter
  // of them at most; 0: when no plan is left. It also ends when `interrupted` says so.
  double within = 0;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  double memory = 0;  // bytes of this process and its workers; 0: any
  std::function<bool()> interrupted{};
  std::function<void(const SoFar&)> tell{};  // after each replay, and once a second
};

struct FoundPlan {
  std::size_t plan = 0;  // of the space
  LeastStep least;
  Outcome outcome;
  Range step_time;   // eight draws of ten
  double fits = 1;   // share of the draws in which it does
  double first = 0;  // share of the draws in which it is the best of those found, by the goal
};

// This is what would put the second plan first, by the goal.
struct Turning {
  std::uint32_t won = 0, draws = 0;
  std::string cause;         // on which it loses most time beside the first; of memory none
  Seconds lost;              // by it
  std::optional<Mover> by;   // the constant that moves second over first most, at its ends
  std::optional<double> at;  // where in its range they are equal
};

// This is the split that the job has, beside the best.
struct OwnPlan {
  std::size_t plan = 0;
  Outcome outcome;
  std::string cause;  // on which it loses most time beside the first
  Seconds lost{};     // by it
};

// These plans could be neither replayed nor put aside.
struct OpenPlans {
  std::size_t plans = 0;
  double least = 0;          // of the goal: no plan of these comes below
  std::size_t too_dear = 0;  // of them: their replay needs more memory than a worker may take
  bool interrupted = false;  // else time has ended the search
};

struct PlanAnswer {
  std::vector<FoundPlan> best;
  double free = 0;          // share of a GPU's memory that these leave
  std::uint32_t draws = 0;  // of the constants, that each of these has been through
  OpenPlans open;
  std::optional<Turning> second;
  std::optional<OwnPlan> own;  // where it was replayed
  std::size_t plans = 0;
  std::size_t too_large = 0;  // put aside: cannot fit
  std::size_t too_slow = 0;   // put aside: cannot be among the best
  std::size_t replayed = 0;
  std::size_t failed = 0;               // of those: did not fit, or could not run
  std::size_t tight = 0;                // of those: fit, and leave less memory than they have to
  std::optional<std::size_t> smallest;  // plan with the least memory, where nothing fits
  double smallest_bytes = 0;            // that it needs at the least
  std::vector<std::size_t> replays;     // plans, in the order of the space
  SweepTable table;                     // of the same
};

PlanAnswer search_plans(const PlanSpace& space, const PlanSearch& search);

// Returns the figure of an outcome that is to be least.
double goal_of(const Outcome& outcome, PlanGoal goal);
// Returns the cause on which an outcome loses most time beside another, and how much; "": on none.
std::pair<std::string, Seconds> most_lost(const Outcome& first, const Outcome& second);

}  // namespace stepsim
