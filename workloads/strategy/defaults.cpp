#include "workloads/strategy/defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::string_view above = "above ";

bool meets(const std::optional<std::string>& found, std::string_view wanted) {
  if (wanted == "absent") return !found;
  if (!found) return false;
  if (wanted == "present") return true;
  if (!wanted.starts_with(above)) return *found == wanted;
  const auto value = number_from<double>(*found),
             bound = number_from<double>(wanted.substr(above.size()));
  return value && bound && *value > *bound;
}

bool applies(const Default& entry, const Facts& facts) {
  return std::all_of(entry.when.begin(), entry.when.end(), [&](const auto& condition) {
    const auto& [key, wanted] = condition;
    const std::optional<std::string> found = facts(key);
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const std::string& word) { return meets(found, word); });
  });
}

void check_condition(const Table& when, const std::string& key,
                     const std::vector<std::string>& wanted) {
  constexpr std::string_view expected =
      "expected a key of a scenario such as strategy.zero, or gpus or experts";
  const bool known = key == gpus_fact || key == experts_fact || key.starts_with("strategy.") ||
                     key.starts_with("job.") || key.starts_with("cluster.") || key == "model";
  if (!known) when.problem(key, expected);
  for (const std::string& word : wanted)
    if (word.starts_with(above) && !number_from<double>(word.substr(above.size())))
      when.problem(key, fmt::format("expected a number behind \"above\", found \"{}\"", word));
}

}  // namespace

std::optional<std::array<int, 3>> numbers_of_release(std::string_view text) {
  std::array<int, 3> numbers{};
  if (text.starts_with('v')) text.remove_prefix(1);
  const char *at = text.data(), *const end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, failed] = std::from_chars(at, end, numbers[i]);
    if (failed != std::errc{} || numbers[i] < 0)
      return i > 1 ? std::optional(numbers) : std::nullopt;  // 1.0.dev3
    at = next;
    if (at == end) return numbers;
    if (*at != '.') return i > 0 ? std::optional(numbers) : std::nullopt;  // 2.0rc1, 0.1.0+cu121
    ++at;
  }
  return numbers;
}

bool within_releases(std::string_view release, std::string_view from, std::string_view before) {
  const auto at = numbers_of_release(release), first = numbers_of_release(from),
             end = numbers_of_release(before);
  return at && (!first || *first <= *at) && (!end || *at < *end);
}

std::vector<Default> read_defaults(const Table& file, const std::string& origin) {
  std::vector<Default> defaults;
  if (!file.has("defaults")) return defaults;
  for (const Table& entry : file.tables("defaults")) {
    Default made{{}, entry.table("set"), origin};
    entry.text("source");
    if (const auto when = entry.table_if("when"))
      for (const std::string& key : when->keys()) {
        made.when.emplace_back(key, when->values(key));
        check_condition(*when, key, made.when.back().second);
      }
    for (const std::string& part : made.set.keys())
      if (part != "job" && part != "strategy" && part != "engine" && part != "releases")
        made.set.problem(part, "a default is a key of job, strategy or releases, or the engine");
    defaults.push_back(std::move(made));
  }
  return defaults;
}

void lay_under(Document& scenario, std::vector<Default> defaults, const Facts& facts) {
  const auto next = [&] {
    return std::find_if(defaults.begin(), defaults.end(),
                        [&](const Default& entry) { return applies(entry, facts); });
  };
  // An entry may ask for what another sets, so each search begins at the first.
  for (auto entry = next(); entry != defaults.end(); entry = next()) {
    scenario.underlay(entry->set, entry->origin);
    defaults.erase(entry);
  }
}

}  // namespace stepsim
