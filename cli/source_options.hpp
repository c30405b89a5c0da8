// These options are for files of other programs: what they do not hold, and what of that was taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/record.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// The machine that `--cluster` names. Nodes that are not said are the file's, else one.
std::pair<std::string, std::string> cluster_setting(const std::string& name,
                                                    std::optional<std::uint32_t> nodes);

// Returns these options as settings, which every study hands on.
std::vector<std::pair<std::string, std::string>> source_settings_of(const Options& options);

// Writes what was taken for a file of another program, for the first screen; "" when nothing was.
std::string assumptions_text(std::span<const Assumption> assumptions);
// Writes in a line each what was taken, what is not modelled with its effect, and what the file
// does not hold.
std::string taken_in_brief(const Scenario& scenario);
// Writes what was read and changes nothing, is not modelled, or is unusual: a line each, a blank
// one before.
std::string notes_text(const Scenario& scenario);
// A side of a comparison as it was read.
struct ReadSide {
  std::string name;    // "A"
  std::string source;  // its file
  const Scenario& scenario;
};
// Writes what was taken for each side, and what of its file is not modelled; once where sides
// agree.
std::string taken_text(std::span<const ReadSide> sides);
// Returns the same for machines.
Record assumption_record(std::span<const Assumption> assumptions);

// Returns a cluster or node by its name, with what these options say.
ClusterChoice cluster_choice(const std::string& name, const Options& options);

}  // namespace stepsim
