// The release of a framework that a file of its settings is run by, as files around it say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/table/source_question.hpp"

namespace stepsim {

struct FoundRelease {
  std::string release;  // "0.14.0"
  std::string where;    // "requirements.txt:3"
};

// Finds the release of a package in the text of requirements, of a lock file, a project's or an
// environment's file, or in an image's name: "trl==0.14.0", "trl = \"^0.14\"", "- trl=0.14",
// "name = \"trl\"" before "version = \"0.14.0\"", "hiyouga/llamafactory:0.9.3". A lower bound says
// nothing.
std::optional<FoundRelease> release_in(std::string_view text, const std::string& package);

// Returns what the command line, a file beside the source or above it, or keys that few releases
// have, say of a program of workloads/releases.
std::optional<FoundRelease> release_around(const SourceQuestion& question,
                                           const std::string& program,
                                           const std::vector<std::string>& keys);

}  // namespace stepsim
