#include "scenarios/load/load_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/anchor.hpp"
#include "scenarios/read/constants.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/run_file.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

bool is_trace(const std::string& path) {
  return std::filesystem::path(path).extension() == ".h5";
}

// A trace holds the scenario that it is of.
Document open_scenario(const std::string& path) {
  if (!is_trace(path)) return read_document(path);
  const std::string text = read_run(path).scenario;
  if (text.empty())
    throw UserError({{path, 0, "", "is a trace of something else than a scenario's step"}});
  return parse_document(text, path);
}

// A constant goes where a scenario file would have it; its own are where they stand.
void apply(Document& document, const std::string& key, const std::string& value) {
  constexpr std::string_view own = "scenario.";
  if (key.starts_with(own))
    document.set(key.substr(own.size()), value);
  else if (names_constant(key))
    document.set(std::array<std::string, 2>{"constants", key}, value);
  else
    document.set(key, value);
}

// Returns whether the key was set: by its own name, with the block that it stands in, or as a
// constant.
bool was_set(std::string_view path, std::span<const Setting> settings) {
  return std::ranges::any_of(settings, [&](const Setting& setting) {
    const std::string& key = setting.first;
    if (names_constant(key)) return path == "constants";
    return path == key || (path.starts_with(key) && path[key.size()] == '.');
  });
}

// --cluster and --gpus are settings too, of these keys.
bool is_option_of_machine(std::string_view key, std::string_view said) {
  return (key == "cluster" && said == "cluster.node") ||
         (key.starts_with("cluster") && said == "cluster.gpus");
}

// Blames a setting for what it broke, and not the file that it went into.
std::vector<Problem> blame(std::vector<Problem> problems, std::span<const Setting> settings) {
  for (Problem& problem : problems)
    for (const auto& [key, value] : settings) {
      constexpr std::string_view own = "constants.";
      std::string_view said = problem.key;
      if (names_constant(key) && said.starts_with(own)) said.remove_prefix(own.size());
      const bool below =
          said.starts_with(key) && (said.size() == key.size() || said[key.size()] == '.');
      const bool constant =
          names_constant(key) && !said.empty() && key.ends_with(fmt::format(".{}", said));
      if (!below && !constant) continue;
      const bool option = is_option_of_machine(key, said);
      problem.file = option ? said == "cluster.node" ? "--cluster" : "--gpus" : "--set";
      problem.key = option ? "" : constant ? key : std::string(said);
      problem.line = 0;
      break;
    }
  return problems;
}

// A model with a tower of its own for images may be counted without it, and without their tokens.
void add_images(const Catalogue& data, Scenario& scenario) {
  const std::string& name = scenario.model.name;
  if (scenario.job.images > 0 || !is_on(data, model_shelf, name)) return;
  const std::string title = open_entry(data, model_shelf, name).root().text_or("title", "");
  const bool known = load_model(data, name).tower.has_value();
  if (!known && title.find("text tower") == std::string::npos) return;
  scenario.unmodelled.push_back(
      {"images", "",
       fmt::format("the text tower alone is counted{}: with images the real step is slower, 1.3 "
                   "to 2 times, and needs more memory",
                   known ? " (--set job.images=N)" : ""),
       false});
}

// Adds what the file of another program says besides its keys.
void add_translation(const Translation& source, Scenario& scenario) {
  append(scenario.files, source.files);
  scenario.assumptions = source.assumptions;
  for (const SourceKey& key : source.keys)
    if (key.fate == KeyFate::unmodelled)
      scenario.unmodelled.push_back({key.key, key.value, key.remark, key.needs_memory});
  std::vector<std::string> notes = source.notes;
  for (const KeyFate fate : {KeyFate::unmodelled, KeyFate::unknown}) {
    std::vector<std::string> keys;
    for (const SourceKey& key : source.keys)
      if (key.fate == fate)
        keys.push_back(key.remark.empty() ? key.key : fmt::format("{} ({})", key.key, key.remark));
    if (!keys.empty())
      notes.push_back(fmt::format("{}: {}", fmt::join(keys, ", "),
                                  key_fate_titles[static_cast<std::size_t>(fate)]));
  }
  for (std::string& note : notes) note = fmt::format("{}: {}", source.file, note);
  scenario.notes.insert(scenario.notes.begin(), notes.begin(), notes.end());
}

// Writes a setting as a title has it, in one line: "cluster: h100-8".
std::string short_change(const Setting& setting) {
  constexpr std::string_view node = "{node: ";
  std::string value = setting.second;
  if (setting.first == "cluster" && value.starts_with(node) && value.ends_with('}'))
    value = value.substr(node.size(), value.size() - node.size() - 1);
  for (char& c : value)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  return fmt::format("{}: {}", setting.first, value);
}

// A title may speak of machine, sharding or length: what is set over the file stands in its place.
void retitle(Document& document, const std::string& file, std::span<const Setting> settings) {
  constexpr std::size_t most = 3;
  std::vector<std::string> changes;
  for (const Setting& setting : settings) {
    const std::string& key = setting.first;
    if (key == "name") return;
    if (changes_scenario(key) && !names_constant(key) && key != "job.budget" &&
        !key.starts_with("scenario."))
      changes.push_back(short_change(setting));
  }
  if (changes.empty()) return;
  const std::size_t more = changes.size() - std::min(changes.size(), most);
  changes.resize(changes.size() - more);
  document.set("name",
               yaml_quoted(fmt::format("{} with {}{}", std::filesystem::path(file).stem().string(),
                                       fmt::join(changes, ", "),
                                       more > 0 ? fmt::format(" and {} more", more) : "")));
}

Scenario load_as_drawn(const Catalogue& data, const std::string& path_or_name,
                       std::span<const Setting> settings, const MaybeDraw& draw) {
  const std::string file = find_scenario(data, path_or_name);
  const auto source = is_trace(file) ? std::nullopt : translate_source(data, file, settings);
  Document document = source ? document_of(*source) : open_scenario(file);
  for (const auto& [key, value] : settings)
    if (changes_scenario(key) || (!source && key != source_kind_setting && !is_anchor_setting(key)))
      apply(document, key, value);
  if (source) keep_lines(*source, document);
  retitle(document, file, settings);
  let_settings_stand(data, document, settings);
  try {
    Scenario scenario = read_scenario(data, std::move(document), draw, {});
    if (source) {
      add_translation(*source, scenario);
      add_images(data, scenario);
    }
    for (SaidKey& said : scenario.said)
      if (was_set(said.path, settings)) said.origin = {.source = "--set"};
    if (file != path_or_name && data.is_overlay(file))
      scenario.notes.push_back(overlay_note(std::array{file}));
    return scenario;
  } catch (const UserError& error) {
    if (!source && !is_trace(file)) refuse_diffusion(data, file);
    std::vector<Problem> problems = blame(error.problems(), settings);
    throw UserError(source ? in_words_of_source(std::move(problems), *source) : problems);
  }
}

}  // namespace

Scenario load_scenario(const Catalogue& data, const std::string& path_or_name,
                       std::span<const Setting> settings, const MaybeDraw& draw) {
  if ((draw && draw->after) || is_without_anchor(settings))
    return load_as_drawn(data, path_or_name, settings, draw);
  std::shared_ptr<const Anchor> anchor = named_anchor(data, settings);
  if (has_usual_anchors(data, settings)) {
    Scenario scenario = load_as_drawn(data, path_or_name, settings, {});
    anchor = usual_anchor(data, scenario);
    if (!anchor && !draw) return scenario;
  }
  if (!anchor) return load_as_drawn(data, path_or_name, settings, draw);
  const MaybeDraw after = anchored(*anchor, draw);
  Scenario scenario = load_as_drawn(data, path_or_name, settings, after);
  apply_anchor(*anchor, after, scenario);
  return scenario;
}

}  // namespace stepsim
