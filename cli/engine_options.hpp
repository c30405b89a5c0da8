// These options choose the engine that plays what a command prints; the texts say which one did.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "sim/base/record.hpp"
#include "sim/engine/player.hpp"

namespace stepsim {

Player player_of(const Options& options);

// Returns what results as JSON say of the engine.
Record played_record(const std::optional<PlayedBy>& by);
// Returns the last line of a text.
std::string played_text(const PlayedBy& by);

}  // namespace stepsim
