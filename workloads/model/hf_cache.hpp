// Models as Hugging Face calls them, ORG/NAME, and what its programs have put into a local cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

// Two names with a slash between them, and neither a path on this machine.
bool is_hf_id(std::string_view text);

// Returns where the cache in `hub` would have what belongs to `id`.
std::filesystem::path hf_folder(const std::filesystem::path& hub, const std::string& id);
// The config.json of the snapshot that its main branch stands at, or of the last by name.
std::optional<std::string> cached_config(const std::filesystem::path& hub, const std::string& id);

// NAME, if `folder` is a snapshot of ORG/NAME in a cache.
std::optional<std::string> name_of_snapshot(const std::filesystem::path& folder);

}  // namespace stepsim
