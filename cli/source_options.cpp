#include "cli/source_options.hpp"

#include <fmt/format.h>

#include "scenarios/import/source_question.hpp"
#include "scenarios/import/sources.hpp"
#include "scenarios/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {

std::vector<std::pair<std::string, std::string>> source_settings_of(const Options& options) {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add = [&](std::string_view option, std::string_view key) {
    if (const auto value = options.get(option)) settings.emplace_back(key, *value);
  };
  add("from", source_kind_setting);
  add("tokens", set_tokens_setting);
  add("samples-in-set", set_samples_setting);
  add("launch", launch_setting);
  add("accelerate", accelerate_setting);
  add("model", "model");
  constexpr std::uint32_t most = 1u << 20;
  const auto nodes = count_of(options, "nodes", 1, most);
  if (const auto name = options.get("cluster")) {
    if (name->empty() || name->find_first_of("\"\\\n{}[],: ") != std::string::npos)
      throw UserError(fmt::format("--cluster: expected a name, found \"{}\"", *name));
    settings.emplace_back("cluster", nodes ? fmt::format("{{node: {}, nodes: {}}}", *name, *nodes)
                                           : fmt::format("{{node: {}}}", *name));
  } else if (nodes) {
    settings.emplace_back("cluster.nodes", std::to_string(*nodes));
  }
  return settings;
}

namespace {

std::vector<Assumption> assumptions_of(
    const CommandLine& line, const std::string& file,
    std::span<const std::pair<std::string, std::string>> settings) {
  const std::string path = find_scenario(line.data, file);
  if (path.ends_with(".h5")) return {};
  const auto translation = translate_source(line.data, path, settings);
  return translation ? translation->assumptions : std::vector<Assumption>{};
}

}  // namespace

std::string assumptions_text(const CommandLine& line, const std::string& file,
                             std::span<const std::pair<std::string, std::string>> settings) {
  TextTable table{{"not in the file", "taken", "because", "change it with"},
                  {Align::left, Align::left, Align::left, Align::left},
                  {}};
  for (const Assumption& each : assumptions_of(line, file, settings))
    table.rows.push_back({each.what, each.taken, each.why, each.change});
  return table.rows.empty() ? "" : render(table) + "\n";
}

Records assumption_records(const CommandLine& line, const std::string& file,
                           std::span<const std::pair<std::string, std::string>> settings) {
  const auto parts = [](const Assumption& each) -> Records {
    return {{"what", "what the file does not hold", each.what},
            {"taken", "what was taken", each.taken},
            {"because", "why that", each.why},
            {"change", "options that say something else", each.change}};
  };
  return {{"assumptions", "what a file of another program does not hold, and what was taken",
           list_of(assumptions_of(line, file, settings), parts)}};
}

}  // namespace stepsim
