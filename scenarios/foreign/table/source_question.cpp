#include "scenarios/foreign/table/source_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/anchor.hpp"
#include "scenarios/read/entries.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {

bool SourceQuestion::decides(std::string_view path) const {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) {
    const std::string& key = setting.first;
    return path == key || (path.starts_with(key) && path[key.size()] == '.');
  });
}

SourceSurroundings surroundings_of(const SourceQuestion& question, const Document& so_far) {
  Document document = parse_document(so_far.canonical(), question.file);
  for (const auto& [key, value] : question.settings)
    if ((key.starts_with("cluster") || key == "model") && !names_constant(key))
      document.set(key, value);
  for (const std::string_view count : {"cluster.nodes", "cluster.gpus_per_node"})
    if (const auto so_many = so_far.peek(count); so_many && !document.peek(count))
      document.set(count, *so_many);
  SourceSurroundings found;
  try {
    const Table root = document.root();
    const Names names = read_names(question.data, root, root.table("cluster"), question.file);
    if (!names.cluster.name.empty()) found.cluster = load_cluster(question.data, names.cluster);
    if (!names.model.empty())
      found.model = load_model(question.data, names.model);
    else if (root.is_mapping("model"))
      found.model = read_hf_config(root.table("model"), "the model");
  } catch (const UserError&) {  // said again, and better, when the scenario is read
  }
  return found;
}

std::string first_stack(const Catalogue& data, const std::vector<std::string>& names) {
  const std::vector<std::string> present = names_on(data, stack_shelf);
  for (const std::string& name : names)
    if (std::find(present.begin(), present.end(), name) != present.end()) return name;
  return names.empty() ? "" : names.back();
}

namespace {

constexpr std::array own_settings{source_kind_setting, set_tokens_setting, set_samples_setting,
                                  launch_setting, accelerate_setting};

bool is_own(std::string_view key) {
  return std::find(own_settings.begin(), own_settings.end(), key) != own_settings.end();
}

}  // namespace

std::string said(Settings settings, std::string_view key) {
  std::string value;
  for (const auto& [name, text] : settings)
    if (name == key) value = text;
  return value;
}

double count_said(Settings settings, std::string_view key, std::string_view option) {
  const std::string text = said(settings, key);
  if (text.empty()) return 0;
  const auto parsed = parse_quantity(text);
  if (!parsed || parsed->dimension != Dimension::ratio || !(parsed->value >= 1) ||
      parsed->value > 1e18)
    throw UserError(fmt::format("{}: expected a number such as 2.5e8, found \"{}\"", option, text));
  return parsed->value;
}

bool changes_scenario(std::string_view key) {
  if (names_constant(key)) return true;
  const std::string_view head = key.substr(0, key.find('.'));
  return holds(scenario_heads, head);
}

std::vector<std::pair<std::string, std::string>> settings_of_source(Settings settings) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [key, value] : settings)
    if (!changes_scenario(key) && !is_own(key) && !is_anchor_setting(key))
      given.emplace_back(key, value);
  return given;
}

}  // namespace stepsim
