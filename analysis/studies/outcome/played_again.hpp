// This plays the one point of a study that a person reads first by the engine that plays what is
// read.
#pragma once

#include <span>
#include <string>

#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"

namespace stepsim {

// Replays the scenario with these settings. Throws std::logic_error where its step does not take
// the time that the study found for it, to a billionth. `metered`: its energy is what is read.
PlayedBy play_again(const Catalogue& data, const std::string& scenario,
                    std::span<const Setting> settings, double step_time, const Player& player,
                    bool metered = false);

}  // namespace stepsim
