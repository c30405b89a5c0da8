// What frameworks do differs between their releases. workloads/releases/ has a file for each
// program; a fact in it holds from a release on, up to another one, and says keys of a scenario, or
// what leaving out keys of the program's own files means.
//   releases: {trl: 0.14}  # in a scenario
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/keys/key.hpp"
#include "scenarios/scenario.hpp"
#include "topology/catalog.hpp"
#include "workloads/strategy/defaults.hpp"

namespace stepsim {

inline constexpr Shelf release_shelf{"workloads/releases", "program"};
inline constexpr std::string_view releases_block = "releases";

// Returns the release that is taken where nobody says one.
std::string assumed_release(const Catalogue& data, const std::string& program);
// Returns whether the text is numbers with dots, such as 0.14 or 0.5.2.post1.
bool is_release(std::string_view text);

// Returns what leaving out keys of the program's files means in this release: {"bf16", "false"}.
std::vector<std::pair<std::string, std::string>> release_words(const Catalogue& data,
                                                               const std::string& program,
                                                               const std::string& release);
// Returns the newest release that has all of these keys of a file, where that is not the one that
// is assumed; nothing where they do not tell.
std::optional<std::string> release_with(const Catalogue& data, const std::string& program,
                                        const std::vector<std::string>& keys);

// Returns the releases of others that this one runs on: {"transformers", "4.45"}.
std::vector<std::pair<std::string, std::string>> releases_below(const Catalogue& data,
                                                                const std::string& program,
                                                                const std::string& release);

// Returns the defaults of all programs that the stack runs, or that the scenario names, and lays
// the releases that others run on under the scenario. `files` keeps what they are views into.
std::vector<Default> release_defaults(const Catalogue& data, Document& scenario,
                                      const std::vector<std::string>& of_stack,
                                      std::vector<Document>& files);
// Reads a program's file, and writes each fact as "from 0.19: bf16 unless a file says otherwise".
std::vector<std::string> release_lines(const Table& file);
// Notes names and numbers in the scenario's block that are none.
void check_releases(const Catalogue& data, const Table& root);

// Writes "trl 0.14, transformers 4.48", as the scenario or a file beside it says, or "trl 1.10
// (assumed)" of the stack's own program; "" for stacks whose releases are not told apart.
std::string releases_text(const Catalogue& data, const Scenario& scenario);
// Returns the facts of a key of the block, which is a program's name.
const KeyFacts& release_facts(std::string_view program);
// Returns whether the value came from a release, and not from who wrote the scenario.
bool is_of_release(const Origin& origin);
// Writes "release trl 0.14".
std::string release_origin(std::string_view program, std::string_view release);

}  // namespace stepsim
