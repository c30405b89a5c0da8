#include "scenarios/import/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/constants.hpp"
#include "scenarios/import/axolotl.hpp"
#include "scenarios/import/deepspeed_alone.hpp"
#include "scenarios/import/megatron.hpp"
#include "scenarios/import/nemo_rl.hpp"
#include "scenarios/import/open_instruct.hpp"
#include "scenarios/import/relaxed_json.hpp"
#include "scenarios/import/source_question.hpp"
#include "scenarios/import/torchtitan.hpp"
#include "scenarios/import/verl.hpp"
#include "sim/base/units.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

using Settings = std::span<const std::pair<std::string, std::string>>;

constexpr std::array scenario_heads{"name",   "note",     "model",    "cluster",   "stack",
                                    "job",    "strategy", "measured", "estimated", "constants",
                                    "family", "engine",   "recipe",   "scenario"};

// A kind of file: words that only it has, and words that it has beside one of those.
struct Kind {
  std::string_view name, title;
  std::vector<std::string_view> marks, beside;
  Translation (*translate)(const SourceQuestion&, const Document&);  // null: a scenario already
  bool toml = false;                                                 // only such files are meant
  std::vector<std::string_view> never{};                             // words that it never has
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"scenario",
       "a scenario",
       {"cluster", "stack", "job", "strategy"},
       {},
       nullptr,
       false,
       {"policy", "grpo"}},
      {"axolotl",
       "an Axolotl file",
       {"base_model"},
       {"sequence_len", "micro_batch_size", "gradient_accumulation_steps", "datasets", "adapter",
        "sample_packing", "num_epochs", "val_set_size", "dataset_prepared_path"},
       translate_axolotl},
      {"deepspeed",
       "a DeepSpeed file",
       {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size",
        "zero_allow_untested_optimizer"},
       {},
       translate_deepspeed},
      {"megatron",
       "a Megatron file",
       {"num-layers", "tensor-model-parallel-size", "train"},
       {"micro-batch-size", "seq-length", "ddp", "scheduler", "dataset", "checkpoint"},
       translate_megatron},
      {"verl", "a verl file", {"actor_rollout_ref"}, {}, translate_verl},
      {"nemo-rl", "a NeMo-RL file", {"policy"}, {"grpo", "loss_fn", "defaults"}, translate_nemo_rl},
      {"open-instruct",
       "settings of open-instruct's GRPO",
       {"num_learners_per_node", "num_unique_prompts_rollout"},
       {},
       translate_open_instruct},
      {"torchtitan",
       "a TorchTitan file",
       {"training"},
       {"model", "parallelism", "activation_checkpoint", "metrics", "checkpoint"},
       translate_torchtitan,
       true}};
  return all;
}

// Files that people try, and that hold no training.
struct Other {
  std::string_view key, title;
};
constexpr std::array others{
    Other{"merge_method", "a recipe of mergekit, which trains nothing"},
    Other{"compute_environment", "a file of Accelerate, which is not read yet"},
    Other{"finetuning_type", "a file of LLaMA-Factory, which is not read yet"},
    Other{"claims", "a file of claims, for `stepsim check`"},
    Other{"services", "a file of Docker, which trains nothing"}};

template <class Words>
std::string first_in(const std::vector<std::string>& keys, const Words& words) {
  for (const std::string& key : keys)
    if (std::find(words.begin(), words.end(), key) != words.end()) return key;
  return "";
}

std::string mark_of(const Kind& kind, const std::vector<std::string>& keys) {
  const std::string mark = first_in(keys, kind.marks);
  return kind.beside.empty() || !first_in(keys, kind.beside).empty() ? mark : "";
}

std::string none_of_these(const std::vector<std::string>& keys) {
  for (const Other& other : others)
    if (std::find(keys.begin(), keys.end(), other.key) != keys.end())
      return fmt::format("is {}", other.title);
  return "looks like nothing that is read here: a scenario has cluster, stack, job and strategy, "
         "an Axolotl file base_model with sequence_len or the like, a DeepSpeed file "
         "zero_optimization, a TorchTitan file [training]";
}

const Kind& kind_of(const Document& document, const std::string& asked) {
  const std::vector<Kind>& all = kinds();
  if (!asked.empty()) {
    const auto place =
        std::find_if(all.begin(), all.end(), [&](const Kind& kind) { return kind.name == asked; });
    if (place != all.end()) return *place;
    const std::vector<std::string> names = source_kinds();
    throw UserError(fmt::format("--from: expected {}, found \"{}\"{}", one_of(names), asked,
                                did_you_mean(asked, names)));
  }
  const Table root = document.root();
  const std::vector<std::string> keys = root.keys();
  std::vector<std::pair<const Kind*, std::string>> found;
  const bool toml = document.file().ends_with(".toml");
  for (const Kind& kind : all)
    if (std::string mark = mark_of(kind, keys);
        !mark.empty() && toml == kind.toml && first_in(keys, kind.never).empty())
      found.emplace_back(&kind, mark);
  if (found.size() == 1) return *found.front().first;
  // What has little of a scenario is a scenario with mistakes, and its reader names them.
  if (found.empty() && !toml && (keys.empty() || !first_in(keys, scenario_heads).empty()))
    return all.front();
  if (found.empty()) throw UserError({{document.file(), 0, "", none_of_these(keys)}});
  const auto& [one, one_mark] = found[0];
  const auto& [other, other_mark] = found[1];
  throw UserError(
      {{document.file(), 0, "",
        fmt::format("looks like {} ({}, line {}) and like {} ({}, line {}) at once: "
                    "--from {} or --from {} says which",
                    one->title, one_mark, root.origin(one_mark)->line, other->title, other_mark,
                    root.origin(other_mark)->line, one->name, other->name)}});
}

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

Document open_source(const std::string& file) {
  if (!file.ends_with(".json")) return read_document(file);
  return parse_document(without_comments(read_file(file), file), file);
}

// What was set is no mistake of the file.
std::vector<Problem> blame_settings(std::vector<Problem> problems, Settings settings) {
  for (Problem& problem : problems)
    for (const auto& [key, value] : settings)
      if (problem.key == key) {
        problem.file = "--set";
        problem.line = 0;
      }
  return problems;
}

}  // namespace

std::vector<std::string> source_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

bool changes_scenario(std::string_view key) {
  if (names_constant(key)) return true;
  const std::string_view head = key.substr(0, key.find('.'));
  return std::find(scenario_heads.begin(), scenario_heads.end(), head) != scenario_heads.end();
}

std::optional<Translation> translate_source(const std::string& data, const std::string& file,
                                            Settings settings) {
  Document document = open_source(file);
  const Kind& kind = kind_of(document, said(settings, source_kind_setting));
  if (kind.translate == nullptr) {
    for (const std::string_view key : {set_tokens_setting, set_samples_setting})
      if (!said(settings, key).empty())
        throw UserError(
            "--tokens and --samples-in-set are for files of other programs: a scenario says "
            "job.tokens or job.samples");
    return std::nullopt;
  }
  SourceQuestion question{.data = data, .file = file, .settings = settings};
  question.set_tokens = count_said(settings, set_tokens_setting, "--tokens");
  question.set_samples = count_said(settings, set_samples_setting, "--samples-in-set");
  constexpr std::array own{source_kind_setting, set_tokens_setting, set_samples_setting};
  for (const auto& [key, value] : settings)
    if (!changes_scenario(key) && std::find(own.begin(), own.end(), key) == own.end())
      document.set(key, value);
  try {
    return kind.translate(question, document);
  } catch (const UserError& error) {
    throw UserError(blame_settings(error.problems(), settings));
  }
}

}  // namespace stepsim
