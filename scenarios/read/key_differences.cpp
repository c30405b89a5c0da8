#include "scenarios/read/key_differences.hpp"

#include <algorithm>

namespace stepsim {
namespace {

// Titles and what was observed do not change what is predicted. What DeepSpeed's file may not
// change shows in the keys themselves, and constants have a table of their own.
bool changes_runs(const ResolvedKey& key) {
  if (key.facts->name == "deepspeed_except" || key.facts->name == "constants") return false;
  if (key.block.empty())
    return key.facts->name != "name" && key.facts->name != "note" && key.facts->name != "family";
  return !key.block.starts_with("measured") && !key.block.starts_with("estimated");
}

std::vector<ResolvedKey> keys_of(const Scenario& scenario) {
  std::vector<ResolvedKey> keys = resolved_keys(scenario);
  std::erase_if(keys, [](const ResolvedKey& key) { return !changes_runs(key); });
  return keys;
}

}  // namespace

std::vector<KeyPair> differing_keys(const Scenario& a, const Scenario& b) {
  std::vector<KeyPair> pairs;
  std::vector<ResolvedKey> rest = keys_of(b);
  for (ResolvedKey& key : keys_of(a)) {
    const auto other = std::ranges::find_if(
        rest, [&](const ResolvedKey& each) { return each.path() == key.path(); });
    if (other == rest.end()) {
      pairs.push_back({std::move(key), std::nullopt});
      continue;
    }
    if (other->value != key.value) pairs.push_back({std::move(key), *other});
    rest.erase(other);
  }
  for (ResolvedKey& other : rest) pairs.push_back({std::nullopt, std::move(other)});
  return pairs;
}

}  // namespace stepsim
