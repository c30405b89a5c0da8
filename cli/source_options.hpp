// These options are for files of other programs: what they do not hold, and what of that was taken.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

inline constexpr std::array source_options{
    OptionSpec{"cluster", "NAME",
               "the machine: a name of `stepsim list clusters` or `list nodes`, or a card: h100, "
               "\"RTX 4090\", A100-80G, h100:4"},
    OptionSpec{"gpu", "NAME",
               "the same, for a card: one of it, unless the file or --gpus says more"},
    OptionSpec{"gpus", "N", "how many GPUs in all; nodes follow from it"},
    OptionSpec{"nodes", "N", "how many nodes of it"},
    OptionSpec{"host-memory", "SIZE", "memory of each host, such as 64GB"},
    OptionSpec{"cores", "N", "cores of each host"},
    OptionSpec{"model", "NAME",
               "the model: a name of `stepsim list models`, or the path of a config.json"},
    OptionSpec{"tokens", "N",
               "tokens of the data set, for the time of the whole job (a file of another program)"},
    OptionSpec{"samples-in-set", "N",
               "rows or pairs of the data set (the same); of packed rows beside --set "
               "job.document_length.mean=TOKENS"},
    OptionSpec{"from", "KIND",
               "which program the file is of, where it is not told by what it holds; a wrong word "
               "lists them"},
    OptionSpec{"accelerate", "FILE", "a file of Accelerate beside one of arguments"},
    OptionSpec{"launch", "N", "which of the trainings that a script starts (default: the first)"},
    OptionSpec{"release", "PROGRAM=VERSION",
               "the release of a framework, such as trl=0.14: `stepsim list releases`; repeats", 0,
               true},
    OptionSpec{
        "anchor", "FILE",
        "what a measured run says of the constants: a file of `stepsim anchor` (default: the "
        "one of this machine and stack in the folder anchors of a catalogue over the "
        "installed one, such as ~/.config/stepsim/anchors)"},
    OptionSpec{"no-anchor", "", "constants as the catalogue states them"},
    OptionSpec{"budget", "N",
               "operations that a step is written as at most (job.budget); what takes more is "
               "refused beforehand"}};

// Returns a command's own options, and these.
template <std::size_t N>
constexpr auto with_source_options(const std::array<OptionSpec, N>& own) {
  std::array<OptionSpec, N + source_options.size()> all{};
  for (std::size_t i = 0; i < N; ++i) all[i] = own[i];
  for (std::size_t i = 0; i < source_options.size(); ++i) all[N + i] = source_options[i];
  return all;
}

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

}  // namespace stepsim
