// Runs by the word that a person has for them: a saved trace, or a scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/outcome/interval.hpp"
#include "cli/command.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Reads a trace, or replays a scenario. Settings and the player are for scenarios.
Run load_run(const CommandLine& line, const std::string& word, std::span<const Setting> settings,
             const Player& player);

// The files that this reads.
std::vector<std::string> run_files(const CommandLine& line, const std::string& word,
                                   std::span<const Setting> settings);

// Draws of the constants where nobody asked for a number of them: eight, where a step has so few
// operations that they take a tenth of a second.
std::uint32_t usual_samples(std::size_t operations);
// Returns nothing where no draws are asked for.
std::optional<Interval> interval_of_run(const IntervalQuestion& question);
// Adds the interval to the summary, as step_time_low and step_time_high and so on.
void add_interval(Run& run, const Interval& interval);

}  // namespace stepsim
