#include "analysis/studies/outcome/file_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/outcome/known_changes.hpp"
#include "scenarios/foreign/door/opened_source.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view zero_block = "strategy.zero_optimization.";
constexpr std::string_view offload_block = "strategy.offload.";

// Returns what DeepSpeed's file says in the place of a key of ours; "": nothing of the kind.
std::string in_deepspeed(const Setting& setting) {
  const auto& [key, value] = setting;
  if (key.starts_with(zero_block))
    return fmt::format("zero_optimization.{}: {}", key.substr(zero_block.size()), value);
  if (key == "strategy.zero") return fmt::format("zero_optimization.stage: {}", value);
  if (!key.starts_with(offload_block)) return "";
  const std::string what = key.substr(offload_block.size());
  if (what == "optimizer")
    return fmt::format("zero_optimization.offload_optimizer.device: {}", value);
  if (what == "parameters") return fmt::format("zero_optimization.offload_param.device: {}", value);
  if (what == "pin_memory" || what == "ratio")
    return fmt::format("zero_optimization.offload_optimizer.{}: {}", what, value);
  return "";
}

bool has_deepspeed_file(const Scenario& scenario) {
  return std::ranges::any_of(scenario.files,
                             [](const std::string& file) { return file.ends_with(".json"); });
}

}  // namespace

FileWords::FileWords(const Catalogue& data, const std::string& source,
                     std::vector<Setting> settings, const Scenario& scenario)
    : data_(data), source_(source), settings_(std::move(settings)), scenario_(scenario) {
  const std::string file = find_scenario(data, source);
  if (file.ends_with(".h5")) return;
  const OpenedSource opened = open_source(data, file, settings_);
  if (opened.kind == nullptr || opened.kind->translate == nullptr) return;
  program_ = opened.kind->title;
  if (opened.kind->table.empty()) return;
  const Document facts = import_facts(data, opened.kind->table);
  const auto advice = facts.root().table_if("advice");
  if (!advice) return;
  for (const std::string& key : advice->keys()) {
    const Table values = advice->table(key);
    for (const std::string& value : values.keys()) {
      Word word{.key = key, .value = value, .theirs = {}};
      const Table theirs = values.table(value);
      for (const std::string& name : theirs.keys())
        word.theirs.emplace_back(name, theirs.one_line(name));
      words_.push_back(std::move(word));
    }
  }
}

const FileWords::Word* FileWords::find(const Setting& setting) const {
  const auto place = std::ranges::find_if(words_, [&](const Word& word) {
    return word.key == setting.first && (word.value == setting.second || word.value == "any");
  });
  return place == words_.end() ? nullptr : &*place;
}

// The importer has to make of their words what was meant.
bool FileWords::makes_the_same(const std::vector<Setting>& theirs,
                               const std::vector<Setting>& ours) const {
  std::vector<Setting> settings = settings_;
  append(settings, theirs);
  try {
    const std::vector<ResolvedKey> keys = resolved_keys(load_scenario(data_, source_, settings));
    return std::ranges::all_of(ours,
                               [&](const Setting& setting) { return says_so(keys, setting); });
  } catch (const UserError&) {
    return false;
  }
}

std::vector<Setting> FileWords::of(const std::vector<Setting>& change) const {
  std::vector<Setting> result;
  for (const Setting& setting : change) {
    const Word* const word = find(setting);
    if (word == nullptr) {
      result.push_back(setting);
      continue;
    }
    if (word->theirs.empty()) return {};
    std::vector<Setting> theirs = word->theirs;
    for (auto& [key, value] : theirs)
      if (value == "VALUE") value = setting.second;
    if (makes_the_same(theirs, {setting}))
      append(result, theirs);
    else
      result.push_back(setting);
  }
  // Whoever writes a DeepSpeed file with an optimizer on the host pins its memory.
  const auto on_host = std::ranges::find(result, Setting{"strategy.offload.optimizer", "cpu"});
  if (on_host != result.end() && has_deepspeed_file(scenario_) &&
      !holds(result, "strategy.offload.pin_memory", &Setting::first))
    result.insert(on_host + 1, Setting{"strategy.offload.pin_memory", "true"});
  return result;
}

std::string FileWords::text(const std::vector<Setting>& change, double rows) const {
  if (program_.empty()) return change_text(change, rows);
  std::vector<Setting> shown;
  bool ours = false;
  for (const Setting& setting : change) {
    const bool known = !changes_scenario(setting.first);
    const std::string deepspeed =
        !known && has_deepspeed_file(scenario_) ? in_deepspeed(setting) : "";
    const bool threads = setting.first == "strategy.offload.threads";
    ours =
        ours || (!known && !threads && deepspeed.empty() && !setting.first.starts_with("cluster."));
    if (threads) {
      shown.emplace_back("OMP_NUM_THREADS of the launcher", setting.second);
    } else if (deepspeed.empty()) {
      shown.push_back(setting);
    } else {
      const std::size_t colon = deepspeed.find(": ");
      shown.emplace_back(deepspeed.substr(0, colon), deepspeed.substr(colon + 2));
    }
  }
  return change_text(shown, rows) + (ours ? " (--set: the file has no key for it)" : "");
}

}  // namespace stepsim
