#include "analysis/studies/explain/setting_mixtures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>

#include "analysis/studies/predict/draws.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/releases.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view unset = "null";

std::string settable(const std::optional<ResolvedKey>& key) {
  return key && !key->value.empty() ? key->value : std::string(unset);
}

std::string readable(const std::optional<ResolvedKey>& key) {
  return key ? value_text(*key) : "no such key";
}

// A model beside its scenario's file is not beside the other's.
std::string from_anywhere(const Catalogue& data, const ScenarioSource& side, std::string value) {
  const std::string near = beside(find_scenario(data, side.source), value);
  const bool is_path = near != value || value.find('/') != std::string::npos;
  std::error_code failed;
  if (!is_path || !std::filesystem::exists(near, failed)) return value;
  return std::filesystem::absolute(near, failed).string();
}

bool matters(const KeyPair& pair) {
  return (pair.a && pair.a->matters) || (pair.b && pair.b->matters);
}

DifferingSetting setting_between(const Catalogue& data, const ScenarioSource& a,
                                 const ScenarioSource& b, const KeyPair& pair) {
  DifferingSetting setting{.key = pair.either().path(),
                           .a = settable(pair.a),
                           .b = settable(pair.b),
                           .text_a = readable(pair.a),
                           .text_b = readable(pair.b),
                           .said_a = pair.a && pair.a->said,
                           .said_b = pair.b && pair.b->said,
                           .matters = matters(pair)};
  // A side without a release has the one that is taken.
  if (pair.either().block == releases_block)
    for (const auto& [side, value, text] : {std::tuple{&pair.a, &setting.a, &setting.text_a},
                                            std::tuple{&pair.b, &setting.b, &setting.text_b}})
      if (!*side) *text = *value = assumed_release(data, std::string(pair.either().facts->name));
  if (setting.key == "model") {
    setting.a = from_anywhere(data, a, setting.a);
    setting.b = from_anywhere(data, b, setting.b);
  }
  return setting;
}

// Returns whether other keys show what this one says.
bool shows_elsewhere(const std::string& key) {
  return key == "recipe" || key == "strategy.deepspeed";
}

void leave_out_what_follows_node(std::vector<DifferingSetting>& settings) {
  const auto is_node = [](const DifferingSetting& each) { return each.key == "cluster.node"; };
  if (std::ranges::none_of(settings, is_node)) return;
  std::erase_if(settings, [&](const DifferingSetting& each) {
    return !each.said_a && !each.said_b && each.key.starts_with("cluster.") && !is_node(each);
  });
}

// Drops settings that only follow from a release that differs, which carries them.
void leave_out_what_follows_releases(const ScenarioSource& a, const ScenarioSource& b,
                                     std::vector<DifferingSetting>& settings) {
  const std::string front = fmt::format("{}.", releases_block);
  const auto is_release_key = [&](const DifferingSetting& each) {
    return each.key.starts_with(front);
  };
  if (std::ranges::none_of(settings, is_release_key)) return;
  const auto follows = [](const Scenario& scenario, const std::string& key) {
    const auto said = std::ranges::find(scenario.said, key, &SaidKey::path);
    return said != scenario.said.end() && is_of_release(said->origin);
  };
  const auto nobody = [](const Scenario& scenario, const std::string& key) {
    const auto said = std::ranges::find(scenario.said, key, &SaidKey::path);
    return said == scenario.said.end() || !said->origin.source.empty();
  };
  std::erase_if(settings, [&](const DifferingSetting& each) {
    const bool of_a = follows(a.scenario, each.key), of_b = follows(b.scenario, each.key);
    return !is_release_key(each) && (of_a || of_b) && (of_a || nobody(a.scenario, each.key)) &&
           (of_b || nobody(b.scenario, each.key));
  });
}

// Constants that one of the two says for itself; the others follow from cluster and stack.
void add_given_constants(const Scenario& a, const Scenario& b,
                         std::vector<DifferingSetting>& settings) {
  for (const NamedConstant& own : a.constants) {
    const auto other = std::ranges::find(b.constants, own.name, &NamedConstant::name);
    if (other == b.constants.end() || other->value == own.value) continue;
    if (own.grade != Grade::given && other->grade != Grade::given) continue;
    if (own.name.starts_with("scenario.")) continue;
    const Setting from = setting_of(own, own.value), to = setting_of(*other, other->value);
    settings.push_back({.key = from.first,
                        .a = from.second,
                        .b = to.second,
                        .text_a = value_text(own, own.value),
                        .text_b = value_text(*other, other->value),
                        .said_a = own.grade == Grade::given,
                        .said_b = other->grade == Grade::given});
  }
}

// Pinned says which keys are stated though nobody gave their values: all; those of B, and those of
// A that load alone; or none.
enum class Pinned : std::uint8_t { all, possible, none };

std::optional<Scenario> loaded(const Catalogue& data, const ScenarioSource& a,
                               const std::vector<Setting>& changes) {
  std::vector<Setting> all = a.settings;
  append(all, changes);
  try {
    return load_scenario(data, a.source, all);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::optional<Scenario> tried(const Catalogue& data, const ScenarioSource& a,
                              const std::vector<DifferingSetting>& settings, const Joined& joined,
                              Pinned pinned) {
  std::vector<Setting> changes;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const DifferingSetting& each = settings[i];
    const bool own = !joined[i] && !each.said_a &&
                     (pinned == Pinned::all ||
                      (pinned == Pinned::possible && loaded(data, a, {{each.key, each.a}})));
    const bool other = joined[i] && (each.said_a || each.said_b || pinned != Pinned::none);
    if (own || other) changes.emplace_back(each.key, other ? each.b : each.a);
  }
  return loaded(data, a, changes);
}

std::optional<Scenario> tried(const Catalogue& data, const ScenarioSource& a,
                              const std::vector<DifferingSetting>& settings, const Joined& joined) {
  for (const Pinned pinned : {Pinned::all, Pinned::possible, Pinned::none})
    if (auto scenario = tried(data, a, settings, joined, pinned)) return scenario;
  return std::nullopt;
}

// One after the other, and again, until none of those that are left makes sense.
Scenario as_many_as_can(const Catalogue& data, const ScenarioSource& a,
                        const std::vector<DifferingSetting>& settings, const Joined& joined) {
  Scenario best = a.scenario;
  Joined in(settings.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (!joined[i] || in[i]) continue;
      in[i] = true;
      auto scenario = tried(data, a, settings, in);
      in[i] = scenario.has_value();
      if (!scenario) continue;
      best = *std::move(scenario);
      more = true;
    }
  }
  return best;
}

}  // namespace

std::vector<DifferingSetting> differing_settings(const Catalogue& data, const ScenarioSource& a,
                                                 const ScenarioSource& b) {
  std::vector<DifferingSetting> settings;
  for (const KeyPair& pair : differing_keys(a.scenario, b.scenario))
    if (!shows_elsewhere(pair.either().path()))
      settings.push_back(setting_between(data, a, b, pair));
  leave_out_what_follows_node(settings);
  leave_out_what_follows_releases(a, b, settings);
  add_given_constants(a.scenario, b.scenario, settings);
  return settings;
}

Scenario mixture(const Catalogue& data, const ScenarioSource& a,
                 const std::vector<DifferingSetting>& settings, const Joined& joined) {
  if (std::ranges::none_of(joined, [](bool each) { return each; })) return a.scenario;
  if (auto scenario = tried(data, a, settings, joined)) return *std::move(scenario);
  return as_many_as_can(data, a, settings, joined);
}

}  // namespace stepsim
