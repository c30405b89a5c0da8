#include "scenarios/read/resolved.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/keys/key_pages.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/releases.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

std::string path_of(std::string_view block, std::string_view name) {
  if (block.empty() || name.empty()) return std::string(block.empty() ? name : block);
  return fmt::format("{}.{}", block, name);
}

const SaidKey* find_said(const Scenario& scenario, std::string_view path) {
  const auto place = std::ranges::find(scenario.said, path, &SaidKey::path);
  return place == scenario.said.end() ? nullptr : &*place;
}

struct Resolver {
  const Scenario& scenario;
  std::vector<ResolvedKey> keys{};

  template <class Subject>
  void add(std::string_view block, const Key<Subject>& key, const Subject& subject, bool matters) {
    ResolvedKey resolved{
        .block = std::string(block), .facts = &key.facts, .value = {}, .origin = {}};
    if (key.text != nullptr) resolved.value = key.text(key.facts, subject);
    if (const SaidKey* said = find_said(scenario, resolved.path())) {
      resolved.said = true;
      resolved.origin = said->origin;
      if (key.text == nullptr) resolved.value = said->text;
    }
    resolved.of_grpo = scenario.grpo && block.starts_with("job");
    resolved.matters = matters && (key.matters == nullptr || key.matters(subject));
    keys.push_back(std::move(resolved));
  }

  template <class Subject>
  void add(std::string_view name, const Block<Subject>& block, const Subject& subject,
           bool matters = true) {
    const bool used = matters && (block.matters == nullptr || block.matters(subject));
    for (const Key<Subject>& key : block.keys) add(path_of(name, block.name), key, subject, used);
  }

  template <class Subject>
  void add(std::string_view name, std::span<const Block<Subject>> blocks, const Subject& subject) {
    for (const Block<Subject>& block : blocks)
      add(name, block, subject, block.name != "moe" || scenario.model.experts.has_value());
  }

  void add_head(std::string_view name, std::string_view value) {
    for (const Key<Head>& key : head_keys()) {
      if (key.facts.name != name) continue;
      add("", key, Head{}, true);
      if (!value.empty()) keys.back().value = value;
    }
  }

  void add_releases() {
    const std::string front = fmt::format("{}.", releases_block);
    for (const SaidKey& said : scenario.said)
      if (said.path.starts_with(front))
        keys.push_back({.block = std::string(releases_block),
                        .facts = &release_facts(said.path.substr(front.size())),
                        .value = said.text,
                        .said = true,
                        .origin = said.origin});
  }

  void add_job() {
    add("job", method_block(), scenario.job);
    if (!scenario.grpo) return add("job", job_blocks(), scenario.job);
    add("job", grpo_blocks(), *scenario.grpo);
    add("job", grpo_switches(), scenario.strategy);
  }
};

ClusterChoice choice_of(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto said = [&](std::string_view path, const std::string& else_text) {
    const SaidKey* key = find_said(scenario, path);
    return key == nullptr ? else_text : key->text;
  };
  return {.name = said("cluster.node", cluster.node.name),
          .nodes = cluster.nodes,
          .network = cluster.network ? cluster.network->name : "",
          .gpus = cluster.gpus_per_node(),
          .processor = said("cluster.processor", ""),
          .platform = said("cluster.platform", ""),
          .placement = said("cluster.placement", ""),
          .cores = static_cast<std::uint32_t>(cluster.node.host.cores)};
}

struct Sayings {
  std::vector<SaidKey> said{};

  void add(const Table& table, std::string_view block, std::string_view name) {
    if (const auto origin = table.origin(name))
      said.push_back({path_of(block, name), table.one_line(name), *origin});
  }

  template <class Subject>
  void add(const Table& table, std::string_view name, const Block<Subject>& block) {
    const bool here = block.name.empty();
    if (!here && !table.is_mapping(block.name)) return;
    const Table inner = here ? table : table.table(block.name);
    for (const Key<Subject>& key : block.keys) {
      add(inner, path_of(name, block.name), key.facts.name);
      if (key.facts.formerly.empty()) continue;
      if (const auto older = inner.origin(key.facts.formerly))
        said.push_back({path_of(path_of(name, block.name), key.facts.name),
                        inner.one_line(key.facts.formerly), *older});
    }
  }

  template <class Subject>
  void add(const Table& root, std::string_view name, std::span<const Block<Subject>> blocks) {
    if (!root.is_mapping(name)) return;
    for (const Block<Subject>& block : blocks) add(root.table(name), name, block);
  }
};

// Returns whether the scenario says the key in its own place, beside another key that decides on
// it.
bool said_itself(const Scenario& scenario, const ResolvedKey& key) {
  const auto itself = [&](const SaidKey& said) {
    return said.path == key.path() && !said.origin.source.starts_with("job.");
  };
  return std::ranges::any_of(scenario.said, itself);
}

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

std::string ResolvedKey::path() const {
  return path_of(block, facts->name);
}

std::vector<ResolvedKey> resolved_keys(const Scenario& scenario) {
  Resolver all{scenario};
  all.add_head("name", scenario.name);
  all.add_head("note", "");
  all.add_head("family", scenario.family);
  all.add_head("model", "");
  all.add_head("stack", "");
  all.add_head("recipe", "");
  if (scenario.engine) all.add_head("engine", scenario.engine->name);
  all.add_head("constants", "");
  all.add_releases();
  all.add("cluster", cluster_blocks(), choice_of(scenario));
  all.add_job();
  all.add("strategy", strategy_blocks(), scenario.strategy);
  if (scenario.measured) all.add("measured", observation_blocks(), *scenario.measured);
  if (scenario.estimated) all.add("estimated", observation_blocks(), *scenario.estimated);
  return std::move(all.keys);
}

std::string origin_text(const ResolvedKey& key) {
  if (!key.said) return "default";
  const auto& [source, line] = key.origin;
  if (source.empty()) return fmt::format("line {}", line);
  return line > 0 ? fmt::format("{}:{}", source, line) : source;
}

std::string value_text(const ResolvedKey& key) {
  if (!key.value.empty()) return key.value;
  const std::string block = key.of_grpo ? fmt::format("grpo{}", key.block.substr(3)) : key.block;
  const std::string& otherwise = key_texts(block, key.facts->name).otherwise;
  return otherwise.empty() ? "not set" : fmt::format("not set: {}", otherwise);
}

// Writes what nobody knows of a run, with all that it may be; "" for what is known.
std::string unknown_yaml(const Scenario& scenario, const std::string& path) {
  const auto place =
      std::ranges::find(scenario.constants, "scenario." + path, &NamedConstant::name);
  if (place == scenario.constants.end()) return "";
  const NamedConstant& c = *place;
  const auto end = [&](double value) {  // with a unit where there is one
    return c.dimension == Dimension::ratio ? fmt::to_string(value) : value_text(c, value);
  };
  const std::string range = c.words.empty()
                                ? fmt::format("low: {}, high: {}", end(c.low), end(c.high))
                                : fmt::format("any_of: [{}]", fmt::join(c.words, ", "));
  return fmt::format("{{value: {}, {}, grade: {}, source: {}}}", value_text(c, c.value), range,
                     to_text(c.grade), yaml_quoted(c.source));
}

std::string scenario_yaml(const Scenario& scenario) {
  std::string text, open;
  for (const ResolvedKey& key : resolved_keys(scenario)) {
    // A key that another one decides on follows from that, and is written only where it is said as
    // well, since defaults ask what is said. DeepSpeed's file is taken in.
    if (!key.said || (key.origin.source.starts_with("job.") && !said_itself(scenario, key)) ||
        key.facts->name.starts_with("deepspeed_except") || key.path() == "strategy.deepspeed")
      continue;
    const std::string& said = find_said(scenario, key.path())->text;
    const bool typed = key.facts->kind == KeyKind::flag || key.facts->kind == KeyKind::word ||
                       key.facts->kind == KeyKind::whole || key.facts->kind == KeyKind::number;
    std::string value = (typed || said.empty()) && !key.value.empty() ? key.value : said;
    if (const std::string unknown = unknown_yaml(scenario, key.path()); !unknown.empty())
      value = unknown;
    const std::size_t dot = key.block.find('.');
    const std::string outer = key.block.substr(0, dot);
    if (key.block != open) {
      if (!outer.empty() && open.substr(0, open.find('.')) != outer)
        text += fmt::format("{}:\n", outer);
      if (dot != std::string::npos) text += fmt::format("  {}:\n", key.block.substr(dot + 1));
      open = key.block;
    }
    const std::size_t indent = outer.empty() ? 0 : dot == std::string::npos ? 2 : 4;
    text += fmt::format("{:{}}{}: {}\n", "", indent, key.facts->name, value);
  }
  if (text.find("\nstrategy:\n") == std::string::npos) text += "strategy: {}\n";  // has to stand
  return text;
}

std::vector<SaidKey> said_keys(const Table& root, bool grpo) {
  Sayings all;
  for (const Key<Head>& key : head_keys())
    if (key.facts.name != releases_block) all.add(root, "", key.facts.name);
  if (const auto releases = root.table_if(releases_block))
    for (const std::string& each : releases->keys()) all.add(*releases, releases_block, each);
  all.add(root, "cluster", cluster_blocks());
  all.add(root, "job", std::span(&method_block(), 1));
  if (grpo) {
    all.add(root, "job", grpo_blocks());
    all.add(root, "job", std::span(&grpo_switches(), 1));
  } else {
    all.add(root, "job", job_blocks());
  }
  all.add(root, "strategy", strategy_blocks());
  for (const std::string_view name : {"measured", "estimated"})
    all.add(root, name, observation_blocks());
  return std::move(all.said);
}

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
