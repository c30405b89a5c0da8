// These options choose the engine that plays what a command prints; the texts say which one did.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "sim/base/record.hpp"
#include "sim/engine/player.hpp"

namespace stepsim {

inline constexpr OptionSpec engine_option{
    "engine", "WHICH",
    "auto (SimGrid, compared with the engine of our own; beyond ten seconds our own alone), own, "
    "simgrid, or both: also where they differ most (default: auto)"};
inline constexpr OptionSpec cfg_option{
    "cfg", "KEY:VALUE", "for SimGrid's configuration, such as maxmin/precision:1e-9; repeats", 0,
    true};

Player player_of(const Options& options);

// Returns what results as JSON say of the engine.
Record played_record(const std::optional<PlayedBy>& by);
// Returns the last line of a text.
std::string played_text(const PlayedBy& by);

}  // namespace stepsim
