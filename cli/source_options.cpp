#include "cli/source_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/anchor.hpp"
#include "scenarios/read/releases.hpp"
#include "scenarios/read/taken.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {

std::pair<std::string, std::string> cluster_setting(const std::string& name,
                                                    std::optional<std::uint32_t> nodes) {
  if (name.empty() || name.find_first_of("\"\\\n{}[],") != std::string::npos)
    throw UserError(fmt::format("--cluster: expected a name, found \"{}\"", name));
  const bool plain = name.find_first_of(": ") == std::string::npos;
  const std::string node = plain ? name : fmt::format("\"{}\"", name);
  return {"cluster", nodes ? fmt::format("{{node: {}, nodes: {}}}", node, *nodes)
                           : fmt::format("{{node: {}}}", node)};
}

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
  add("budget", "job.budget");
  add("anchor", anchor_setting);
  if (options.has("anchor") && options.has("no-anchor"))
    throw UserError("--anchor and --no-anchor: only one of them can hold");
  if (options.has("no-anchor")) settings.emplace_back(no_anchor_setting, "true");
  for (const auto& [name, value] : options.values) {
    if (name != "release") continue;
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0 || !is_release(value.substr(equals + 1)))
      throw UserError(
          fmt::format("--release: expected PROGRAM=VERSION such as trl=0.14, found \"{}\"", value));
    settings.emplace_back(fmt::format("{}.{}", releases_block, value.substr(0, equals)),
                          value.substr(equals + 1));
  }
  constexpr std::uint32_t most = 1u << 20;
  const auto nodes = count_of(options, "nodes", 1, most);
  const auto card = options.get("gpu");
  if (card && options.has("cluster"))
    throw UserError("--gpu and --cluster: both name the machine; --gpus says how many GPUs");
  if (const auto name = card ? card : options.get("cluster"))
    settings.push_back(cluster_setting(*name, nodes));
  else if (nodes)
    settings.emplace_back("cluster.nodes", std::to_string(*nodes));
  if (const auto gpus = count_of(options, "gpus", 1, most))
    settings.emplace_back("cluster.gpus", std::to_string(*gpus));
  add("host-memory", "cluster.host.dram_capacity");
  add("cores", "cluster.cores");
  return settings;
}

Record assumption_record(std::span<const Assumption> assumptions) {
  const auto parts = [](const Assumption& each) -> Records {
    return {{"what", "what the file does not hold", each.what},
            {"taken", "what was taken", each.taken},
            {"because", "why that", each.why},
            {"change", "options that say something else", each.change}};
  };
  return {"assumptions", "what a file of another program leaves open, and what was taken",
          list_of(assumptions, parts)};
}

std::string assumptions_text(std::span<const Assumption> assumptions) {
  std::string text;
  std::vector<Assumption> others;
  for (const Assumption& each : assumptions)
    if (each.what == anchored_constants)
      text += fmt::format("{}\n  ({}; change it with {})\n\n", each.taken, each.why, each.change);
    else
      others.push_back(each);
  if (others.empty()) return text;
  return text +
         render(table_of(
             assumption_record(others).parts(),
             "what=not in the file; taken=taken; because=because; change=change it with")) +
         "\n";
}

std::string taken_in_brief(const Scenario& scenario) {
  std::string text = fmt::format("taken: {}\n", taken_line(taken_of(scenario)));
  const auto keys = mapped(scenario.unmodelled, [](const UnmodelledKey& each) {
    return each.why.empty() ? each.key : fmt::format("{} ({})", each.key, each.why);
  });
  if (!keys.empty()) text += fmt::format("not modelled: {}\n", fmt::join(keys, "; "));
  std::vector<std::string> whats;
  whats.reserve(scenario.assumptions.size());
  for (const Assumption& each : scenario.assumptions)
    if (each.what == anchored_constants)
      text.insert(0, each.taken + "\n");
    else
      whats.push_back(fmt::format("{} ({})", each.what, each.taken));
  if (!whats.empty()) text += fmt::format("assumed: {}\n", fmt::join(whats, ", "));
  return text;
}

std::string notes_text(const Scenario& scenario) {
  std::string text;
  for (const std::string& note : scenario.notes) text += fmt::format("\nnote: {}", readable(note));
  return text.empty() ? text : text + "\n";
}

std::string taken_text(std::span<const ReadSide> sides) {
  struct Said {
    std::string text;
    std::vector<std::string> whose;
  };
  std::vector<Said> said;
  for (const ReadSide& side : sides) {
    std::string text = assumptions_text(side.scenario.assumptions);
    for (const std::string& note : side.scenario.notes)
      if (note.starts_with(side.source + ":")) text += fmt::format("note: {}\n", on_one_line(note));
    if (text.empty()) continue;
    text = text.substr(0, text.find_last_not_of('\n') + 1);
    auto same = std::ranges::find(said, text, &Said::text);
    if (same == said.end()) same = said.insert(same, {std::move(text), {}});
    same->whose.push_back(side.name);
  }
  std::string all;
  for (const auto& [text, whose] : said) {
    if (whose.size() < sides.size()) all += fmt::format("of {}:\n", fmt::join(whose, " and "));
    all += text + "\n\n";
  }
  for (const ReadSide& side : sides.subspan(std::min<std::size_t>(1, sides.size())))
    for (const std::string& each : unknown_differences({sides.front().name, sides.front().scenario},
                                                       {side.name, side.scenario}))
      all += fmt::format("note: {} and {} differ in what is not modelled: {}\n\n",
                         sides.front().name, side.name, each);
  return all;
}

ClusterChoice cluster_choice(const std::string& name, const Options& options) {
  return {.name = name,
          .nodes = count_of(options, "nodes", 1, most_nodes),
          .network = options.get("network").value_or(""),
          .platform = options.get("platform").value_or(""),
          .placement = options.get("placement").value_or("")};
}

}  // namespace stepsim
