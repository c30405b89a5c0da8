#include "scenarios/foreign/write/exports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/foreign/write/writers.hpp"
#include "scenarios/read/resolved.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<ExportedFile>;

Files axolotl_files(const Catalogue& data, const Scenario& scenario, const std::string& path) {
  const std::string beside = fs::path(path).replace_extension(".deepspeed.json").string();
  Files files{{path, axolotl_text(data, scenario, fs::path(beside).filename().string())}};
  if (needs_deepspeed_file(scenario)) files.push_back({beside, deepspeed_text(scenario)});
  return files;
}

Files accelerate_files(const Catalogue& data, const Scenario& scenario, const std::string& path) {
  const auto beside = [&](const char* ending) {
    return fs::path(path).replace_extension(ending).string();
  };
  const std::string launch = beside(".accelerate.yaml"), zero = beside(".deepspeed.json");
  Files files{{path, trl_text(data, scenario, fs::path(launch).filename().string())},
              {launch, accelerate_text(scenario, fs::path(zero).filename().string())}};
  if (needs_deepspeed_file(scenario)) files.push_back({zero, deepspeed_text(scenario)});
  return files;
}

Files deepspeed_files(const Catalogue&, const Scenario& scenario, const std::string& path) {
  if (!needs_deepspeed_file(scenario))
    throw UserError("--as deepspeed: is for strategy.zero of 1, 2 or 3");
  return {{path, deepspeed_text(scenario)}};
}

template <std::string (*Text)(const Catalogue&, const Scenario&)>
Files one_file(const Catalogue& data, const Scenario& scenario, const std::string& path) {
  return {{path, Text(data, scenario)}};
}

struct FileKind {
  std::string_view name;
  bool grpo = false;
  std::string_view comment;  // how it begins; empty: the format has none
  std::string_view head;     // stands above everything
  Files (*files)(const Catalogue&, const Scenario&, const std::string&);
  std::string_view read_as = name;  // the word of `--from`
  bool describes_model = false;     // by its widths, not by its name
};

constexpr std::array kinds{
    FileKind{"accelerate", false, "# ", "#!/usr/bin/env bash\n", accelerate_files, "trl"},
    FileKind{"axolotl", false, "# ", "", axolotl_files},
    FileKind{"deepspeed", false, "", "", deepspeed_files},
    FileKind{"megatron", false, "# ", "#!/usr/bin/env bash\n", one_file<megatron_text>, "megatron",
             true},
    FileKind{"openrlhf", false, "# ", "#!/usr/bin/env bash\n", one_file<openrlhf_text>},
    FileKind{"torchtitan", false, "# ", "", one_file<torchtitan_text>},
    FileKind{"verl", true, "# ", "#!/usr/bin/env bash\n", one_file<verl_text>}};

const FileKind& kind_called(std::string_view name) {
  const auto place = std::ranges::find(kinds, name, &FileKind::name);
  if (place != kinds.end()) return *place;
  std::vector<std::string> names = export_kinds();
  names.emplace_back("paje");     // of runs
  names.emplace_back("simgrid");  // of clusters
  std::ranges::sort(names);
  throw UserError(fmt::format("--as: expected {}, found \"{}\"{}", one_of(names), name,
                              did_you_mean(name, names)));
}

// Titles, what others observed, and what settings_beside() says.
bool is_beside(const ResolvedKey& key) {
  const std::string head = key.path().substr(0, key.path().find('.'));
  constexpr std::array heads{"name",   "note",      "family",   "model",    "cluster",
                             "recipe", "constants", "measured", "estimated"};
  if (holds(heads, head)) return true;
  // One is said by the other; a DeepSpeed file is taken in.
  constexpr std::array others{"job.global_batch", "strategy.deepspeed",
                              "strategy.deepspeed_except"};
  return holds(others, key.path());
}

// Returns what a key that leaves it to the stack comes to.
std::string settled(const ResolvedKey& key, const Scenario& scenario) {
  if (key.value != "stack") return key.value;
  const auto word = [](const auto& names, auto kind) {
    return std::string(names[static_cast<std::size_t>(kind)]);
  };
  const Strategy& strategy = scenario.strategy;
  if (key.path() == "strategy.cross_entropy")
    return word(cross_entropy_names, strategy.cross_entropy.value_or(scenario.stack.cross_entropy));
  if (key.path() == "strategy.attention")
    return word(attention_names, strategy.attention.value_or(scenario.stack.attention));
  return key.value;
}

std::string shown(const std::string& value) {
  return value.empty() ? "not set" : value;
}

}  // namespace

std::vector<std::string> export_kinds() {
  return texts_of(kinds, &FileKind::name);
}

std::vector<ExportedFile> export_as(const Catalogue& data, const Scenario& scenario,
                                    std::string_view name, const std::string& path) {
  const FileKind& kind = kind_called(name);
  if (kind.grpo != scenario.grpo.has_value())
    throw UserError(fmt::format("--as {}: is for scenarios {} method: grpo", kind.name,
                                kind.grpo ? "of" : "without"));
  Files files = kind.files(data, scenario, path);
  files.front().text = std::string(kind.head) + files.front().text;
  return files;
}

std::string_view read_as(std::string_view kind) {
  return kind_called(kind).read_as;
}

bool has_comments(std::string_view kind) {
  return !kind_called(kind).comment.empty();
}

bool describes_model(std::string_view kind) {
  return kind_called(kind).describes_model;
}

std::string with_comment(std::string_view name, const std::string& text,
                         const std::vector<std::string>& lines) {
  const FileKind& kind = kind_called(name);
  std::string comment;
  for (const std::string& line : lines) comment += fmt::format("{}{}\n", kind.comment, line);
  return fmt::format("{}{}{}", kind.head, comment, text.substr(kind.head.size()));
}

std::vector<Setting> settings_beside(const Scenario& scenario) {
  std::vector<Setting> settings;
  std::string cluster;
  for (const ResolvedKey& key : resolved_keys(scenario)) {
    if (key.path() == "model") settings.emplace_back("model", key.value);
    if (key.block == "cluster" && key.said && !key.value.empty())
      cluster += fmt::format("{}{}: {}", cluster.empty() ? "" : ", ", key.facts->name, key.value);
  }
  settings.emplace_back("cluster", fmt::format("{{{}}}", cluster));
  return settings;
}

std::vector<std::string> left_unsaid(const Scenario& scenario, const Scenario& read_back) {
  const std::vector<ResolvedKey> other = resolved_keys(read_back);
  std::vector<std::string> unsaid;
  for (const ResolvedKey& key : resolved_keys(scenario)) {
    if (is_beside(key) || !key.matters) continue;
    const auto place = std::find_if(other.begin(), other.end(), [&](const ResolvedKey& each) {
      return each.path() == key.path();
    });
    if (place == other.end()) continue;
    const std::string said = settled(key, scenario), here = settled(*place, read_back);
    if (said != here)
      unsaid.push_back(fmt::format("{}: {}; here it is {}", key.path(), shown(said), shown(here)));
  }
  const std::int64_t parameters = count_parameters(scenario.model).total(),
                     read = count_parameters(read_back.model).total();
  if (parameters != read)
    unsaid.push_back(fmt::format("model: {} parameters; here they are {}", parameters, read));
  return unsaid;
}

}  // namespace stepsim
