#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// A path in the scenario is one from the folder that the scenario is in.
void move_paths(Translation& translation, const std::string& output) {
  const fs::path folder = fs::absolute(output).parent_path();
  for (TranslatedLine& line : translation.lines) {
    if (line.path != "strategy.deepspeed" && line.path != "model") continue;
    const std::string path = line.value.substr(1, line.value.size() - 2);
    std::error_code failed;
    if (fs::exists(path, failed))
      line.value = yaml_quoted(fs::proximate(fs::absolute(path), folder).string());
  }
}

// Returns where the value of a key begins in such a block; npos: it has none.
std::size_t place_in_block(std::string_view block, std::string_view key) {
  for (const char before : {'{', ' '}) {
    const std::string own = fmt::format("{}{}: ", before, key);
    if (const std::size_t place = block.find(own); place != std::string_view::npos)
      return place + own.size();
  }
  return std::string_view::npos;
}

// "{node: mi300x-8}" with what stays in that block.
std::string with_lines(std::string block, const std::string& key,
                       const std::vector<TranslatedLine>& lines) {
  if (!block.ends_with('}')) return block;
  for (const TranslatedLine& line : lines) {
    const std::string own = line.path.substr(key.size() + 1);
    if (place_in_block(block, own) != std::string::npos) continue;  // the command line says another
    block.pop_back();
    block += fmt::format(", {}: {}}}", own, line.value);
  }
  return block;
}

// A block in one line, "{node: h100-8, nodes: 2}", takes a key of its own; it says whether it is
// one.
bool set_in_block(TranslatedLine& line, std::string_view key, const std::string& value) {
  std::string& block = line.value;
  if (!key.starts_with(line.path + ".") || !block.ends_with('}')) return false;
  key.remove_prefix(line.path.size() + 1);
  if (key.find('.') != std::string_view::npos) return false;
  if (const std::size_t from = place_in_block(block, key); from != std::string::npos)
    block.replace(from, block.find_first_of(",}", from) - from, value);
  else
    block.insert(block.size() - 1,
                 fmt::format("{}{}: {}", block.size() > 2 ? ", " : "", key, value));
  return true;
}

// Settings of the scenario stand in its lines, in place of what they replace.
void apply_settings(const std::vector<Setting>& settings, Translation& translation) {
  for (const auto& [key, value] : settings) {
    if (!changes_scenario(key)) continue;
    if (std::ranges::any_of(translation.lines,
                            [&](TranslatedLine& line) { return set_in_block(line, key, value); }))
      continue;
    std::vector<TranslatedLine> stay;  // beside the machine that is named instead
    for (const TranslatedLine& line : translation.lines)
      if (line.stays && line.path.starts_with(key) && line.path[key.size()] == '.')
        stay.push_back(line);
    std::erase_if(translation.lines, [&](const TranslatedLine& line) {
      return line.path == key || (line.path.starts_with(key) && line.path[key.size()] == '.');
    });
    translation.lines.push_back({key, with_lines(value, key, stay), "--set", 0, ""});
  }
}

}  // namespace

int import_command(const CommandLine& line) {
  const auto options = parse("import", line.words);
  if (!options) return exit_code::yes;
  const std::string& file = options->words.front();
  const std::vector<Setting> settings = settings_of(*options);
  auto translation = translate_source(line.data, file, settings);
  if (!translation) throw UserError({{file, 0, "", "is a scenario already"}});
  load_scenario(line.data, file, settings);  // what is wrong with it is said now
  if (options->has("keys")) {
    say("{}", key_lists(*translation));
    return exit_code::yes;
  }
  apply_settings(settings, *translation);
  const auto output = options->get("output");
  if (output) move_paths(*translation, *output);
  const std::string text = translated_scenario(*translation);
  if (!output) {
    say("{}", text);
    return exit_code::yes;
  }
  std::error_code failed;
  if (fs::equivalent(*output, file, failed))
    throw UserError(fmt::format("-o {}: is the file that is read", *output));
  write_file(*output, text);
  say("{}{}: {} keys of {}\n", assumptions_text(translation->assumptions), *output,
      translation->keys.size(), file);
  return exit_code::yes;
}

}  // namespace stepsim
