#include "analysis/studies/grpo/goodput.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace stepsim {
namespace {

constexpr int failures_played = 2000;

// Plays the run with the same failures for every interval, so that intervals are compared under the
// same luck.
Goodput played(const RunTimeline& run, std::int64_t interval) {
  std::mt19937_64 luck(run.seed);
  const double work = static_cast<double>(interval) * run.step, cycle = work + run.save;
  double saved = 0, saving = 0, lost = 0, down = 0;
  double starting = 0;  // left of a restart
  for (int failure = 0; failure < failures_played; ++failure) {
    const double odds = (static_cast<double>(luck() >> 11U) + 0.5) * 0x1p-53;
    double left = -run.between * std::log(odds);
    const double waited = std::min(left, starting);
    down += waited;
    left -= waited;
    const double cycles = std::floor(left / cycle);
    saved += cycles * work;
    saving += cycles * run.save;
    lost += left - cycles * cycle;
    starting = run.restart;
  }
  const double all = saved + saving + lost + down;
  return {.useful = saved / all,
          .saving = saving / all,
          .lost = lost / all,
          .down = down / all,
          .interval = interval,
          .failures = failures_played};
}

}  // namespace

Goodput goodput_of(const RunTimeline& run) {
  if (run.between <= 0 || run.step <= 0) return {};
  if (run.interval > 0) return played(run, run.interval);
  Goodput best;
  best.useful = -1;
  const auto most = static_cast<std::int64_t>(std::max(1.0, run.between / run.step));
  constexpr std::int64_t tenth = 10;
  for (std::int64_t interval = 1; interval <= most;
       interval += std::max<std::int64_t>(1, interval / tenth)) {
    const Goodput with = played(run, interval);
    if (with.useful > best.useful) best = with;
  }
  return best;
}

}  // namespace stepsim
