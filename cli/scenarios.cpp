#include "cli/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/source_options.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/run_length.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// Returns what follows from the keys, and stands in none of them.
Rows rows_of(const Scenario& scenario) {
  const Job& job = scenario.job;
  const std::uint32_t ranks = scenario.cluster.ranks();
  const std::string groups = to_text(mesh_of(scenario.strategy, scenario.cluster));
  Rows rows{{"model", fmt::format("{}, {:.4g} parameters", scenario.model.name,
                                  static_cast<double>(count_parameters(scenario.model).total()))},
            {"cluster", fmt::format("{} x {}, {} ranks", scenario.cluster.nodes,
                                    scenario.cluster.node.name, ranks)},
            {"groups", groups.empty() ? "data only" : groups},
            {"stack", scenario.stack.title},
            {"micro-batch", fmt::format("{} {} of {}: {:.10g} slots, {:.4g} % filled", job.rows(),
                                        job.has_pairs() ? "rows" : "sequences", job.sequence,
                                        job.slots(), 100 * job.fill)}};
  if (const auto length = run_length(scenario)) {
    rows.emplace_back("effective batch", fmt::format("{:.10g}", length->effective_batch));
    rows.emplace_back("optimizer steps", fmt::format("{:.10g}", length->optimizer_steps));
    rows.emplace_back("iterations", fmt::format("{:.10g} on each rank", length->iterations));
    rows.emplace_back("epochs", fmt::format("{:.10g}", length->epochs));
    rows.emplace_back("tokens", fmt::format("{:.4g}", length->tokens));
  }
  return rows;
}

constexpr std::size_t key_width = 36, value_width = 36;

// A long value goes on below itself.
std::string key_line(const ResolvedKey& key) {
  std::string value = wrap(value_text(key), 4 + key_width + value_width, 4 + key_width);
  const std::size_t first = std::min(value.find('\n'), value.size());
  const std::string origin = origin_text(key) + (key.matters ? "" : ", without effect here");
  return fmt::format("  {:<{}}  {:<{}}  {}{}\n", key.facts->name, key_width, value.substr(0, first),
                     value_width, origin, value.substr(first));
}

// Keys of a block that change nothing here and that nobody said.
struct LeftOutKeys {
  std::string block;
  int keys = 0;
};

void fold(std::vector<LeftOutKeys>& folded, const std::string& block) {
  if (folded.empty() || folded.back().block != block) folded.push_back({block});
  ++folded.back().keys;
}

std::string folded_text(const std::vector<LeftOutKeys>& folded) {
  if (folded.empty()) return "";
  int sum = 0;
  std::string blocks;
  for (const LeftOutKeys& each : folded) {
    sum += each.keys;
    blocks += fmt::format("{}{} {}", blocks.empty() ? "" : ", ",
                          each.block.empty() ? "top" : each.block, each.keys);
  }
  return "\n" +
         wrap(
             fmt::format("{} keys are at defaults that change nothing here ({}); --all prints them",
                         sum, blocks),
             100, 0) +
         "\n";
}

Records records_of(const std::string& name, const std::string& file, const Scenario& scenario,
                   const Rows& rows) {
  Records resolved;
  for (const auto& [key, value] : rows)
    resolved.emplace_back(key, "one key for each thing that follows from the keys", value);
  const auto key = [](const ResolvedKey& each) {
    return joined(
        {{{"key", "of the scenario", each.path()}},
         value_records(each),
         {{"matters", "it changes something, other keys being as they are", each.matters}}});
  };
  return {
      {"name", "as it was called", name},
      {"kind", "scenario", "scenario"},
      {"title", "its name", scenario.name},
      {"text", "of the file", file.empty() ? "" : read_file(file)},
      assumption_record(scenario.assumptions),
      {"resolved", "in words", resolved},
      {"keys", "every key, in the order of docs/keys.md", list_of(resolved_keys(scenario), key)}};
}

}  // namespace

Records value_records(const ResolvedKey& key) {
  constexpr std::string_view what = "a number, a flag or a text, as a file would say it";
  const auto value = [&]() -> Record {
    const bool numeric = key.facts->kind == KeyKind::whole || key.facts->kind == KeyKind::number;
    if (key.value.empty()) return {"value", what, std::optional<std::string>()};
    if (key.facts->kind == KeyKind::flag) return {"value", what, key.value == "true"};
    if (const auto number = number_from<double>(key.value); numeric && number)
      return {"value", what, *number};
    return {"value", what, key.value};
  };
  const bool placed = key.said && !key.origin.source.empty(),
             lined = key.said && key.origin.line > 0;
  return {value(),
          {"said", "by anybody; else it is the default", key.said},
          {"source", "of what was said",
           placed ? std::optional(std::string(key.origin.source)) : std::nullopt},
          {"line", "in it", lined ? std::optional(key.origin.line) : std::nullopt}};
}

// A JSON file is a model's configuration or a trainer's settings.
bool is_settings(const std::string& file) {
  std::error_code failed;
  if (!file.ends_with(".json") || !std::filesystem::is_regular_file(file, failed)) return false;
  const Document document = content_of(file);  // with comments, as `run` takes it
  return std::ranges::none_of(std::array{"architectures", "model_type", "hidden_size"},
                              [&](const char* key) { return document.root().has(key); });
}

bool is_scenario(const Catalogue& data, const std::string& name) {
  for (const std::string& each : scenario_names(data))
    if (name == each || name == std::filesystem::path(each).filename()) return true;
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::ranges::any_of(std::array{".yaml", ".yml", ".toml"}, ends) || is_script(name) ||
         is_settings(name);
}

Rows list_scenarios(const Catalogue& data) {
  Rows rows;
  for (const std::string& name : scenario_names(data))
    rows.emplace_back(name, heading_in(scenario_file(data, name), "name"));
  return rows;
}

std::string scenario_text(const std::string& name, const std::string& file,
                          const Scenario& scenario, bool all) {
  std::string text = fmt::format("{} (scenario): {}\n{}\n\nresolved\n", name, scenario.name, file);
  for (const auto& [key, value] : rows_of(scenario))
    text += fmt::format("  {:<{}}  {}\n", key, key_width, value);
  std::string block = "none yet";
  std::vector<LeftOutKeys> folded;
  for (const ResolvedKey& key : resolved_keys(scenario)) {
    if (!all && !key.said && (!key.matters || key.value.empty())) {
      fold(folded, key.block);
      continue;
    }
    if (key.block != block)
      text += fmt::format("\n{}\n", key.block.empty() ? "top of the file" : key.block);
    block = key.block;
    text += key_line(key);
  }
  return text + folded_text(folded);
}

Records scenario_records(const std::string& name, const std::string& file,
                         const Scenario& scenario) {
  return records_of(name, file, scenario, rows_of(scenario));
}

Records scenario_sample() {
  Scenario scenario;
  scenario.assumptions.emplace_back();
  return records_of("", "", scenario, {{"NAME", ""}});
}

}  // namespace stepsim
