#include "scenarios/read/constants.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view name) {
  Words words;
  for (;;) {
    const std::size_t dot = name.find('.');
    words.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return words;
    name.remove_prefix(dot + 1);
  }
}

// All words of the key stand in the name in this order, and both end alike.
bool means(const Words& key, const Words& name) {
  if (key.back() != name.back()) return false;
  std::size_t found = 0;
  for (const std::string_view word : name)
    if (found < key.size() && key[found] == word) ++found;
  return found == key.size();
}

// Returns the name as a user would say it: the parts of a machine begin with the same word.
std::string spoken(const std::string& name, bool with_cluster) {
  if (!with_cluster || name.starts_with("stack.") || name.starts_with("engine.")) return name;
  constexpr std::string_view links = "node.links.";
  if (name.starts_with(links)) return "cluster." + name.substr(links.size());
  return "cluster." + name;
}

std::string no_such(std::span<const NamedConstant> all, std::string_view key) {
  std::vector<std::string> names = mapped(all, [&](const NamedConstant& each) {
    return spoken(each.name, key.starts_with("cluster."));
  });
  return fmt::format(
      "no constant of this cluster or stack is called so{}; `stepsim show` of the "
      "GPU, node, network or stack lists them",
      did_you_mean(key, names));
}

// The constant that a key means: its full name, or some words of it in order, the last among them;
// "cluster" may stand before.
struct Search {
  const NamedConstant* found = nullptr;
  std::string problem;
};

Search search(std::span<const NamedConstant> all, std::string_view key) {
  std::string_view own = key;
  if (own.starts_with("cluster.")) own.remove_prefix(std::string_view("cluster.").size());
  const Words words = words_of(own);
  std::vector<std::string> fits;
  Search result;
  for (const NamedConstant& each : all) {
    if (each.name == own) return {&each, ""};
    if (!means(words, words_of(each.name))) continue;
    fits.push_back(each.name);
    result.found = &each;
  }
  if (fits.empty()) result.problem = no_such(all, key);
  if (fits.size() > 1) result = {nullptr, "may be " + one_of(fits)};
  return result;
}

}  // namespace

bool names_constant(std::string_view key) {
  const Words words = words_of(key);
  constexpr std::array<std::string_view, 13> shelves{
      "gpu",       "node",      "network", "stack",     "attention", "experts",  "mixers",
      "operators", "precision", "method",  "quantised", "engine",    "variation"};
  const bool listed = holds(shelves, words.front());
  if (listed) return words.size() > 1;
  return words.front() == "cluster" && words.size() > 2 && words[1] != "vary";
}

std::vector<GivenConstant> given_constants(const Table& table, std::span<const NamedConstant> all) {
  std::vector<GivenConstant> given;
  for (const std::string& key : table.keys()) {
    const Search result = search(all, key);
    if (result.found == nullptr) {
      table.problem(key, result.problem);
      continue;
    }
    const auto [low, high] = table.range(key, result.found->dimension);
    if (low < high) table.problem(key, "expected one value, not a range");
    given.push_back({result.found->name, low});
  }
  return given;
}

}  // namespace stepsim
