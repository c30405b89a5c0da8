// Which program a file is of, told by what it holds, and its translation into a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/import/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Settings that are no key of any file: what the command line knows of a file of another program.
inline constexpr std::string_view source_kind_setting = "source.kind";  // "axolotl"
inline constexpr std::string_view set_tokens_setting = "data_set.tokens";
inline constexpr std::string_view set_samples_setting = "data_set.samples";

inline constexpr std::string_view launch_setting =
    "source.launch";  // which of a script's, from 1 on

// The words of `--from`.
std::vector<std::string> source_kinds();

// Whether a setting is one of a scenario; else it changes a key of the source.
bool changes_scenario(std::string_view key);

// A program's text: read for what it starts, never as YAML.
bool is_script(const std::string& file);
// What a file holds, to tell it from others: a document, of a script its text under "script".
Document content_of(const std::string& file);

// Nothing when the file is a scenario already. Throws UserError when it is of no kind that can be
// read, or of two at once.
std::optional<Translation> translate_source(
    const std::string& data, const std::string& file,
    std::span<const std::pair<std::string, std::string>> settings);

}  // namespace stepsim
