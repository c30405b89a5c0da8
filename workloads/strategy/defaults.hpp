// Defaults are what a framework's code, or a published recipe, does unless the run says otherwise:
// keys of a scenario as data, some of them only under a condition.
//   defaults:
//     - when: {strategy.zero: 1, strategy.offload.optimizer: [absent, none]}
//       set: {strategy: {distributed_optimizer: {overlap_grad_reduce: true}}}
//       source: where that stands
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

struct Default {
  // Keys and what each may be: a value, `absent`, `present`, or `above 1`.
  std::vector<std::pair<std::string, std::vector<std::string>>> when;
  Table set;
  std::string origin;  // "stack megatron"
};

// Conditions may ask for these, too: GPUs that take part, and experts of a layer (absent: dense).
inline constexpr std::string_view gpus_fact = "gpus", experts_fact = "experts";
// Returns what these are, or a key of the scenario, as far as that is laid out by then.
using Facts = std::function<std::optional<std::string>(std::string_view fact)>;

// The entries of `defaults:`, none when the file has no such list. They are views into the file.
std::vector<Default> read_defaults(const Table& file, const std::string& origin);

// Returns the numbers of a release, "0.5.2.post1" as 0, 5, 2; nothing for what is none.
std::optional<std::array<int, 3>> numbers_of_release(std::string_view text);
// Returns whether a release is neither before the first nor after all before the second; "": any.
bool within_releases(std::string_view release, std::string_view from, std::string_view before);

// Lays them under the scenario. Of two entries that say a key the one that stands first does it,
// whichever of them comes to apply later.
void lay_under(Document& scenario, std::vector<Default> defaults, const Facts& facts);

}  // namespace stepsim
