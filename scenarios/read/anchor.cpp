#include "scenarios/read/anchor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::string_view anchors_folder = "anchors", anchor_ending = ".anchor.yaml";
constexpr std::uint32_t most_draws = 4096;

std::vector<WeightedDraws::One> read_draws(const Table& table, std::uint32_t of) {
  std::vector<WeightedDraws::One> draws;
  double sum = 0;
  for (const Table& each : table.tables("each")) {
    WeightedDraws::One one;
    one.sample = static_cast<std::uint32_t>(each.integer("draw", 0, of - 1));
    one.weight = each.number("weight", 0, 1);
    one.factor = each.number("time", 0.05, 20);
    sum += one.weight;
    draws.push_back(one);
  }
  if (!(sum > 0)) table.problem("each", "expected draws whose weights are above zero together");
  for (WeightedDraws::One& one : draws) one.weight /= sum;
  return draws;
}

std::vector<std::pair<std::string, std::string>> read_entries(const Table& table) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string_view scope : {"gpu", "node", "network", "stack"})
    if (table.has(scope)) entries.emplace_back(scope, table.text(scope));
  return entries;
}

std::string list_text(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& each : texts) text += fmt::format("\n  - {}", yaml_quoted(each));
  return text;
}

std::shared_ptr<const Anchor> anchor_in(const Catalogue& data, const std::string& file) {
  auto& read = data.kept<std::map<std::string, std::shared_ptr<const Anchor>>>();
  std::shared_ptr<const Anchor>& anchor = read[file];
  if (!anchor) anchor = std::make_shared<const Anchor>(parse_anchor(read_text(file), file));
  return anchor;
}

std::vector<std::string> usual_files(const Catalogue& data) {
  std::vector<std::string> files;
  for (const std::string& folder : data.places(anchors_folder))
    if (std::filesystem::is_directory(folder))
      for (const std::string& name : names_in_folder(folder))
        if (name.ends_with(anchor_ending)) files.push_back(fmt::format("{}/{}", folder, name));
  return files;
}

bool was_said(std::span<const Setting> settings, std::string_view key) {
  return std::ranges::any_of(settings, [&](const Setting& each) { return each.first == key; });
}

}  // namespace

std::vector<std::pair<std::string, double>> constants_of_site() {
  // The same work takes the hosts of published tables half to twice the time that the catalogue
  // says, whatever their processor's name.
  return {{"node.host.core_speed", 0.35}};
}

std::vector<std::pair<std::string, std::string>> entries_of(const Scenario& scenario) {
  std::vector<std::pair<std::string, std::string>> entries{{"gpu", scenario.cluster.gpu.name},
                                                           {"node", scenario.cluster.node.name},
                                                           {"stack", scenario.stack.program}};
  if (scenario.cluster.network)
    entries.insert(entries.begin() + 2, {"network", scenario.cluster.network->name});
  return entries;
}

std::vector<std::string> foreign_to(const Anchor& anchor, const Scenario& scenario) {
  std::vector<std::string> scopes;
  for (const auto& [scope, name] : entries_of(scenario))
    if (!anchor.draws->speaks_of(scope, name)) scopes.push_back(scope);
  return scopes;
}

std::string anchor_text(const Anchor& anchor) {
  const WeightedDraws& draws = *anchor.draws;
  std::string text =
      "# Written by `stepsim anchor`: what a measured run says of the constants of this machine "
      "and stack.\n";
  text += fmt::format(
      "anchor: {}\nsaid: {}\nfrom:{}\nreleases: {}\nspeaks_of:", yaml_quoted(anchor.title),
      yaml_quoted(anchor.said), list_text(anchor.from), yaml_quoted(anchor.releases));
  for (const auto& [scope, name] : draws.entries)
    text += fmt::format("\n  {}: {}", scope, yaml_quoted(name));
  text +=
      "\n# Constants that moved, the one that moves the step most first. A place is one in the "
      "range of the catalogue, whose stated value is at 0.5.\nmoved:";
  for (const MovedConstant& each : anchor.moved)
    text += fmt::format("\n  - {{name: {}, place: {:.4f}, from: {}, to: {}}}", each.name,
                        each.place, yaml_quoted(each.from), yaml_quoted(each.to));
  if (anchor.moved.empty()) text += " []";
  text += fmt::format(
      "\n# Draws of all constants together, the fastest first, and what no constant explains "
      "(`time`).\ndraws:\n  seed: {}\n  of: {}\n  effective: {:.1f}\n  runs: {}\n  shared: "
      "{:.4f}\n  "
      "centre: {:.4f}\n  time: {:.4f}\n  another_run: {:.4f}\n  each:",
      draws.seed, draws.of, anchor.effective, draws.runs, draws.shared, draws.centre, draws.factor,
      draws.another_run);
  for (const WeightedDraws::One& one : draws.draws)
    text += fmt::format("\n    - {{draw: {}, weight: {:.5f}, time: {:.4f}}}", one.sample,
                        one.weight, one.factor);
  return text + "\n";
}

Anchor parse_anchor(std::string_view text, const std::string& file) {
  const Document document = parse_document(text, file);
  const Table root = document.root();
  Anchor anchor;
  anchor.title = root.text("anchor");
  anchor.said = root.text("said");
  anchor.from = root.texts("from");
  anchor.releases = root.text_or("releases", "");
  auto draws = std::make_shared<WeightedDraws>();
  draws->entries = read_entries(root.table("speaks_of"));
  for (const Table& each : root.tables("moved")) {
    anchor.moved.push_back({each.text("name"), each.number("place", 0, 1), each.text_or("from", ""),
                            each.text_or("to", "")});
    draws->places.emplace_back(anchor.moved.back().name, anchor.moved.back().place);
  }
  const Table table = root.table("draws");
  draws->seed = static_cast<std::uint64_t>(table.integer("seed", 0, 1LL << 52));
  draws->of = static_cast<std::uint32_t>(table.integer("of", 1, most_draws));
  anchor.effective = table.number("effective", 0, most_draws);
  draws->runs = table.number("runs", 0, 1e6);
  draws->shared = table.number("shared", 0, 1);
  draws->centre = table.number("centre", -5, 5);
  draws->factor = table.number("time", 0.05, 20);
  draws->another_run = table.number("another_run", 0, 1);
  draws->draws = read_draws(table, draws->of);
  draws->of_site = constants_of_site();
  document.finish();
  anchor.draws = std::move(draws);
  return anchor;
}

bool is_anchor_setting(std::string_view key) {
  return key == anchor_setting || key == no_anchor_setting;
}

bool is_without_anchor(std::span<const Setting> settings) {
  return was_said(settings, no_anchor_setting);
}

std::shared_ptr<const Anchor> named_anchor(const Catalogue& data,
                                           std::span<const Setting> settings) {
  const auto named = std::ranges::find(settings, anchor_setting, &Setting::first);
  return named == settings.end() ? nullptr : anchor_in(data, named->second);
}

bool has_usual_anchors(const Catalogue& data, std::span<const Setting> settings) {
  return !was_said(settings, anchor_setting) && !usual_files(data).empty();
}

std::shared_ptr<const Anchor> usual_anchor(const Catalogue& data, const Scenario& scenario) {
  for (const std::string& file : usual_files(data)) {
    auto anchor = anchor_in(data, file);
    if (foreign_to(*anchor, scenario).empty()) return anchor;
  }
  return nullptr;
}

MaybeDraw anchored(const Anchor& anchor, const MaybeDraw& draw) {
  Draw result = draw.value_or(Draw{});
  result.after = anchor.draws;
  result.centre = !draw;
  return result;
}

void apply_anchor(const Anchor& anchor, const MaybeDraw& draw, Scenario& scenario) {
  const std::vector<std::string> foreign = foreign_to(anchor, scenario);
  const bool whole = !holds(foreign, "gpu") && !holds(foreign, "stack");
  if (whole && draw) scenario.stack.unexplained.value.value *= time_factor(*draw);
  std::string why = "the run was of the same GPU, node, network and stack";
  if (!foreign.empty())
    why = fmt::format("the run was of another {}: there the catalogue holds{}",
                      fmt::join(foreign, ", "),
                      whole ? "" : ", and what no constant explained is left out");
  scenario.assumptions.insert(scenario.assumptions.begin(),
                              {std::string(anchored_constants),
                               fmt::format("anchored on your run of {}: {}", anchor.title,
                                           foreign.empty() ? anchor.said : why),
                               why, "--no-anchor"});
}

}  // namespace stepsim
