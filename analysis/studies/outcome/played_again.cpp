#include "analysis/studies/outcome/played_again.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"

namespace stepsim {
namespace {

constexpr double agreed = 1e-9;  // share of a step

}  // namespace

PlayedBy play_again(const Catalogue& data, const std::string& scenario,
                    std::span<const Setting> settings, double step_time, const Player& player,
                    bool metered) {
  const Scenario loaded = load_scenario(data, scenario, settings);
  Seconds now;
  PlayedBy by;
  if (loaded.grpo) {
    const GrpoPrediction p = predict_grpo(loaded, {.player = player});
    now = p.step_time;
    by = p.played_by;
  } else {
    const ReplayedStep step =
        replay_step(step_input(loaded), {.player = player, .metered = metered});
    now = step.trace.makespan;
    by = step.trace.by;
  }
  if (std::abs(now.value - step_time) > agreed * step_time)
    throw std::logic_error(
        fmt::format("the best point takes {:.12g} s when it is played again, not {:.12g} s",
                    now.value, step_time));
  return by;
}

}  // namespace stepsim
