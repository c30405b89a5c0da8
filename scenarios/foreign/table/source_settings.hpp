// The command line knows these of a file of another program, as settings that are no key of any
// file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepsim {

using Settings = std::span<const std::pair<std::string, std::string>>;

inline constexpr std::string_view source_kind_setting = "source.kind";  // "axolotl"
inline constexpr std::string_view set_tokens_setting = "data_set.tokens";
inline constexpr std::string_view set_samples_setting = "data_set.samples";
// This setting says which of a script's launches is meant, from 1 on.
inline constexpr std::string_view launch_setting = "source.launch";

// A setting that is no key of any file: the file of Accelerate beside the one that is read.
inline constexpr std::string_view accelerate_setting = "source.accelerate";

// Returns what is set at the key; "": it is not set. The last of several counts.
std::string said(Settings settings, std::string_view key);
// Returns a number from 1 on, given with `option`; 0: it is not set.
double count_said(Settings settings, std::string_view key, std::string_view option);

// Returns whether a setting is one of a scenario; else it changes a key of the source.
bool changes_scenario(std::string_view key);
// Returns the settings for keys of the source.
std::vector<std::pair<std::string, std::string>> settings_of_source(Settings settings);

}  // namespace stepsim
