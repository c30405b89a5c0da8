#include "scenarios/import/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "scenarios/constants.hpp"
#include "scenarios/import/axolotl.hpp"
#include "scenarios/import/deepspeed_alone.hpp"
#include "scenarios/import/hf_trainer.hpp"
#include "scenarios/import/mapped_source.hpp"
#include "scenarios/import/megatron.hpp"
#include "scenarios/import/nemo_rl.hpp"
#include "scenarios/import/open_instruct.hpp"
#include "scenarios/import/openrlhf.hpp"
#include "scenarios/import/python_source.hpp"
#include "scenarios/import/relaxed_json.hpp"
#include "scenarios/import/script_source.hpp"
#include "scenarios/import/source_question.hpp"
#include "scenarios/import/torchtitan.hpp"
#include "scenarios/import/verl.hpp"
#include "sim/base/units.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

using Settings = std::span<const std::pair<std::string, std::string>>;

constexpr std::array scenario_heads{"name",   "note",     "model",    "cluster",   "stack",
                                    "job",    "strategy", "measured", "estimated", "constants",
                                    "family", "engine",   "recipe",   "scenario"};

// A kind of file: words that only it has, and words that it has beside one of those. Or a kind of
// program that a script starts.
struct Kind {
  std::string_view name, title;
  std::vector<std::string_view> marks{}, beside{};
  Translation (*translate)(const SourceQuestion&, const Document&) = nullptr;  // a scenario already
  std::vector<const char*> programs{};        // "openrlhf.cli.train_*"
  bool takes_file = false;                    // the program's first word is a file of this kind
  bool toml = false;                          // only such files are meant
  std::vector<std::string_view> never{};      // words that it never has
  bool sets_keys = false;                     // arguments are key=value
  std::string_view file_option{};             // that names the file, where no word of its own does
  std::vector<std::string_view> arguments{};  // of programs of any name
};

// Of programs whose settings are read by tables.
std::vector<Kind> kinds_of_settings() {
  return {
      {.name = "megatron",
       .title = "a Megatron file",
       .marks = {"num-layers", "tensor-model-parallel-size", "train"},
       .beside = {"micro-batch-size", "seq-length", "ddp", "scheduler", "dataset", "checkpoint"},
       .translate = translate_megatron,
       .programs = {"*pretrain_gpt.py", "*pretrain_mamba.py", "*run_pretrain*.py",
                    "*finetune_gpt.py"}},
      {.name = "verl",
       .title = "a verl file",
       .marks = {"actor_rollout_ref"},
       .translate = translate_verl,
       .programs = {"verl.trainer.main_*", "recipe.*.main_*"},
       .sets_keys = true},
      {.name = "nemo-rl",
       .title = "a NeMo-RL file",
       .marks = {"policy", "grpo"},
       .beside = {"defaults", "loss_fn", "cluster", "data", "env", "logger"},
       .translate = translate_nemo_rl,
       .programs = {"*run_grpo*.py"},
       .takes_file = true,
       .sets_keys = true,
       .file_option = "config"},
      {.name = "open-instruct",
       .title = "settings of open-instruct's GRPO",
       .marks = {"num_learners_per_node", "num_unique_prompts_rollout"},
       .translate = translate_open_instruct,
       .programs = {"*grpo_fast.py", "open_instruct.grpo_fast"}},
      {.name = "torchtitan",
       .title = "a TorchTitan file",
       .marks = {"training"},
       .beside = {"model", "parallelism", "activation_checkpoint", "metrics", "checkpoint"},
       .translate = translate_torchtitan,
       .programs = {"torchtitan.train", "*torchtitan/train.py"},
       .takes_file = true,
       .toml = true,
       .file_option = "job.config_file"}};
}

// Of programs over the trainer of transformers.
std::vector<Kind> kinds_of_trainers() {
  return {{.name = "llama-factory",
           .title = "a LLaMA-Factory file",
           .marks = {"finetuning_type", "cutoff_len", "stage"},
           .beside = {"model_name_or_path", "template", "dataset"},
           .translate = translate_llama_factory,
           .programs = {"llamafactory-cli train", "lmf train"},
           .takes_file = true},
          {.name = "trl",
           .title = "arguments of TRL",
           .marks = {"model_name_or_path"},
           .beside = {"per_device_train_batch_size", "output_dir", "dataset_name", "learning_rate",
                      "num_train_epochs", "use_peft"},
           .translate = translate_trl,
           .programs = {"trl *", "*Trainer"},
           .takes_file = true,
           .never = {"finetuning_type", "cutoff_len", "stage", "template",
                     "num_unique_prompts_rollout"},
           .file_option = "config",
           .arguments = {"model_name_or_path"}}};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> kinds{
        {.name = "scenario",
         .title = "a scenario",
         .marks = {"cluster", "stack", "job", "strategy"},
         .never = {"policy", "grpo"}},
        {"axolotl",
         "an Axolotl file",
         {"base_model"},
         {"sequence_len", "micro_batch_size", "gradient_accumulation_steps", "datasets", "adapter",
          "sample_packing", "num_epochs", "val_set_size", "dataset_prepared_path"},
         translate_axolotl,
         {"axolotl.cli.train", "axolotl train", "scripts/finetune.py"},
         true},
        {"deepspeed",
         "a DeepSpeed file",
         {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size",
          "zero_allow_untested_optimizer"},
         {},
         translate_deepspeed},
        {"openrlhf", "OpenRLHF", {}, {}, translate_openrlhf, {"openrlhf.cli.train_*"}}};
    for (Kind& kind : kinds_of_settings()) kinds.push_back(std::move(kind));
    for (Kind& kind : kinds_of_trainers()) kinds.push_back(std::move(kind));
    return kinds;
  }();
  return all;
}

// Files that people try, and that hold no training.
struct Other {
  std::string_view key, title;
};
constexpr std::array others{
    Other{"merge_method", "a recipe of mergekit, which trains nothing"},
    Other{"compute_environment",
          "a file of Accelerate, which trains nothing by itself: --accelerate takes it beside a "
          "file of arguments"},
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

// ---- scripts ----

bool starts(const Kind& kind, const Launch& launch) {
  return std::any_of(kind.programs.begin(), kind.programs.end(), [&](const char* program) {
    return fnmatch(program, launch.program.c_str(), 0) == 0;
  });
}

bool is_told(const Kind& kind, const Launch& launch) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const ShellWord& word) {
    return std::any_of(kind.arguments.begin(), kind.arguments.end(),
                       [&](auto argument) { return word.text == fmt::format("--{}", argument); });
  });
}

// By its name, else by its arguments.
const Kind* kind_of(const Launch& launch, const std::string& asked) {
  for (const bool by_name : {true, false})
    for (const Kind& kind : kinds())
      if ((asked.empty() || asked == kind.name) &&
          (by_name ? starts(kind, launch) : is_told(kind, launch)))
        return &kind;
  return nullptr;
}

std::string known_programs() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds())
    if (!kind.programs.empty()) names.emplace_back(kind.name);
  return one_of(names);
}

// A file of settings, or the arguments of a program, and what is known of where they come from.
struct Opened {
  const Kind* kind = nullptr;
  Document document;
  std::string file;
  std::optional<ScriptSource> script{};
  std::vector<UnknownArgument> unknown{};
};

constexpr std::array own_settings{source_kind_setting, set_tokens_setting, set_samples_setting,
                                  launch_setting, accelerate_setting};

bool is_own(std::string_view key) {
  return std::find(own_settings.begin(), own_settings.end(), key) != own_settings.end();
}

// Beside the script, or from here.
std::string file_beside(const std::string& script, const ShellWord& word) {
  const std::filesystem::path folder = std::filesystem::path(script).parent_path();
  const std::filesystem::path said(word.text);
  std::error_code failed;
  if (!word.unknown.empty())
    throw UserError({{script, word.line, "",
                      fmt::format("the name of the file of settings {}",
                                  unknown_argument_message({"1", word}))}});
  for (const auto& place : {folder / said, said, folder / said.filename()})
    if (std::filesystem::is_regular_file(place, failed)) return place.string();
  throw UserError(
      {{script, word.line, "",
        fmt::format("no file {}, which the training is read from", (folder / said).string())}});
}

// What there is to know of the keys of a kind; DeepSpeed's are known to its own reader.
Document facts_of(const std::string& data, const Kind& kind) {
  const std::string file = data_file(data, fmt::format("scenarios/import/{}.yaml", kind.name));
  return std::filesystem::exists(file) ? import_facts(data, kind.name) : parse_document("{}", file);
}

// key=value, +key=value and ++key=value as arguments.
std::vector<ShellWord> words_as_arguments(std::vector<ShellWord> words) {
  for (ShellWord& word : words) {
    const std::size_t from = word.text.find_first_not_of('+');
    if (from == std::string::npos || word.text[from] == '-' ||
        word.text.find('=') == std::string::npos)
      continue;
    word.text = fmt::format("--{}", word.text.substr(from));
  }
  return words;
}

// The file of settings that a program is given: by an option, or by a word of its own.
std::optional<ShellWord> named_file(const Kind& kind, const Table& arguments,
                                    const std::vector<ShellWord>& words) {
  if (!kind.takes_file) return std::nullopt;
  if (!kind.file_option.empty() && arguments.has(kind.file_option))
    return ShellWord{.text = arguments.text(kind.file_option),
                     .line = arguments.origin(kind.file_option)->line};
  return words.empty() || kind.sets_keys ? std::nullopt : std::optional(words.front());
}

std::vector<std::pair<std::string, std::string>> settings_of_source(Settings settings) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [key, value] : settings)
    if (!changes_scenario(key) && !is_own(key)) given.emplace_back(key, value);
  return given;
}

// A Python file that a script starts, or writes with a here-document: what its constructors are
// told. Nothing where it has none of the trainers.
struct PythonText {
  std::string text, file;
  int first_line = 1;
};
std::optional<PythonText> python_of(const std::string& script, const Launch& launch,
                                    const ShellScript& read) {
  if (!launch.program.ends_with(".py")) return std::nullopt;
  const std::filesystem::path program(launch.program);
  if (const auto written = read.files.find(launch.program); written != read.files.end())
    return PythonText{written->second.text, script, written->second.line};
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::path(script).parent_path();
  for (const auto& place : {folder / program, folder / program.filename()})
    if (std::filesystem::is_regular_file(place, failed))
      return PythonText{read_file(place.string()), place.string()};
  return std::nullopt;
}

std::optional<PythonTraining> python_training(const std::string& data, const PythonText& python,
                                              const Launch& launch, Settings settings) {
  PythonQuestion question{.data = data, .file = python.file, .first_line = python.first_line};
  for (const auto& [key, value] : settings_of_source(settings)) question.given[key] = value;
  for (const auto& [key, word] : launch.environment)
    if (word.unknown.empty()) question.environment[key] = word.text;
  if (launch.gpus) question.processes = *launch.gpus * launch.nodes.value_or(1);
  const Arguments arguments = named_arguments(launch.arguments, python.file);
  const Table said = arguments.document.root();
  for (const std::string& key : said.keys()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '-', '_');
    if (!said.one_line(key).starts_with('[')) question.said[name] = said.text_or(key, "");
  }
  auto training = read_python_training(python.text, question);
  if (!training) return std::nullopt;
  // What the script says of the launch stands over what the file would do by itself.
  training->launch.environment = launch.environment;
  if (launch.gpus) training->launch.gpus = launch.gpus;
  if (launch.nodes) training->launch.nodes = launch.nodes;
  if (!launch.file.text.empty()) training->launch.file = launch.file;
  return training;
}

// What the program's arguments, or the file that they name, say.
void open_arguments(const std::string& data, const std::string& script, Opened& opened) {
  const Kind& kind = *opened.kind;
  const Document facts = facts_of(data, kind);
  const std::vector<std::string> flags = facts.root().texts_or("flags");
  const std::vector<ShellWord>& words = opened.script->launch.arguments;
  Arguments arguments =
      named_arguments(kind.sets_keys ? words_as_arguments(words) : words, script, flags);
  for (const ShellWord& word : arguments.others)
    if (!word.unknown.empty())
      opened.script->notes.push_back(
          fmt::format("line {}: arguments that hang on {} are not read", word.line, word.unknown));
  opened.unknown = std::move(arguments.unknown);
  opened.document = std::move(arguments.document);
  const Table root = opened.document.root();
  const auto named = named_file(kind, root, arguments.others);
  if (!named) return;
  opened.file = file_beside(script, *named);
  Document settings_file = open_source(opened.file);
  for (const std::string& key : root.keys())
    if (key != kind.file_option) settings_file.set(key, root.one_line(key));
  opened.document = std::move(settings_file);
}

// What the constructors of the Python file that is started say.
void open_constructors(const std::string& data, const std::string& script, Settings settings,
                       Opened& opened) {
  const Launch launch = opened.script->launch;
  const auto python = python_of(script, launch, opened.script->script);
  auto training = python_training(data, *python, launch, settings);
  opened.script->launch = training->launch;
  opened.document = std::move(training->arguments.document);
  opened.unknown = std::move(training->arguments.unknown);
  opened.file = python->file;
  opened.script->script.names.insert(training->names.begin(), training->names.end());
}

// Settings are variables of the script where it has such, else arguments.
void set_given(Settings given, const std::set<std::string>& names, Opened& opened) {
  for (const auto& setting : given) {
    if (names.contains(setting.first)) continue;
    opened.document.set(setting.first, setting.second);
    std::erase_if(opened.unknown, [&](const auto& each) { return each.key == setting.first; });
  }
}

const Kind* python_kind() {
  const auto place = std::find_if(kinds().begin(), kinds().end(),
                                  [](const Kind& kind) { return kind.name == "trl"; });
  return &*place;
}

Opened open_script(const std::string& data, const std::string& file, Settings settings) {
  const auto given = settings_of_source(settings);
  const std::string asked = said(settings, source_kind_setting);
  const double number = count_said(settings, launch_setting, "--launch");
  const auto kind_in = [&](const Launch& launch, const ShellScript& script) -> const Kind* {
    if (const Kind* kind = kind_of(launch, asked)) return kind;
    const auto python = python_of(file, launch, script);
    return python && python_training(data, *python, launch, settings) ? python_kind() : nullptr;
  };
  ScriptSource script =
      read_script_source({data, file, given,
                          [&](const Launch& launch, const ShellScript& read) {
                            return kind_in(launch, read) != nullptr;
                          },
                          known_programs(), number > 0 ? static_cast<std::size_t>(number) : 1});
  Opened opened{kind_in(script.launch, script.script), parse_document("{}", file), file,
                std::move(script)};
  if (starts(*opened.kind, opened.script->launch) || is_told(*opened.kind, opened.script->launch))
    open_arguments(data, file, opened);
  else
    open_constructors(data, file, settings, opened);
  set_given(given, opened.script->script.names, opened);
  return opened;
}

Opened open_python(const std::string& data, const std::string& file, Settings settings) {
  auto training = python_training(data, {read_file(file), file}, {}, settings);
  if (!training)
    throw UserError({{file, 0, "",
                      "is a Python file that calls no trainer of transformers or TRL; it was read, "
                      "not run"}});
  Opened opened{python_kind(), std::move(training->arguments.document), file,
                ScriptSource{{}, std::move(training->launch), {}, {}},
                std::move(training->arguments.unknown)};
  set_given(settings_of_source(settings), training->names, opened);
  return opened;
}

Opened open(const std::string& data, const std::string& file, Settings settings) {
  if (is_shell_script(file)) return open_script(data, file, settings);
  if (file.ends_with(".py")) return open_python(data, file, settings);
  if (!said(settings, launch_setting).empty())
    throw UserError(fmt::format("--launch: {} is no script", file));
  Document document = open_source(file);
  const Kind& kind = kind_of(document, said(settings, source_kind_setting));
  if (kind.translate != nullptr)
    for (const auto& [key, value] : settings)
      if (!changes_scenario(key) && !is_own(key)) document.set(key, value);
  return {&kind, std::move(document), file};
}

// An argument that only a run would know is a mistake where it counts.
void refuse_unknown(const SourceQuestion& question, const Opened& opened) {
  if (opened.unknown.empty()) return;
  const Document facts = facts_of(question.data, *opened.kind);
  const Table root = facts.root();
  std::vector<std::string> spare = root.texts_or("may_be_unknown");
  if (question.decides("model"))
    for (const std::string& key : root.texts_or("names_model")) spare.push_back(key);
  std::vector<std::string> counts = root.texts_or("read");
  for (const std::string& key : root.texts_or("used")) counts.push_back(key);
  if (root.is_mapping("keys"))
    for (const std::string& key : root.table("keys").keys()) counts.push_back(key);
  std::vector<Problem> problems;
  for (const UnknownArgument& each : opened.unknown)
    if (std::find(counts.begin(), counts.end(), each.key) != counts.end() &&
        std::find(spare.begin(), spare.end(), each.key) == spare.end())
      problems.push_back({opened.file, each.word.line, each.key, unknown_argument_message(each)});
  if (!problems.empty()) throw UserError(problems);
}

// What the launcher says of GPUs holds on any machine that has as many.
void keep_launcher(const SourceQuestion& question, Translation& translation) {
  if (question.launch == nullptr || !question.launch->gpus || !question.decides("cluster.node"))
    return;
  const SourceSurroundings around = surroundings_of(question, document_of(translation));
  if (!around.cluster) return;
  const auto there = static_cast<std::int64_t>(around.cluster->node.count(PartKind::gpu));
  if (*question.launch->gpus < there)
    translation.lines.push_back({"cluster.gpus_per_node", std::to_string(*question.launch->gpus),
                                 "the launcher", question.launch->line, "", true});
  else if (*question.launch->gpus > there)
    translation.notes.push_back(
        fmt::format("the launcher asks for {} GPUs of a node, which has {}: these are taken",
                    *question.launch->gpus, there));
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

namespace {

// In quotes of YAML, whatever it holds.
std::string escaped(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\')
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + '"';
}

// What the launch's environment says of PyTorch's allocator.
void keep_allocator(const SourceQuestion& question, Translation& translation) {
  if (question.launch == nullptr) return;
  for (const std::string name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const auto place = question.launch->environment.find(name);
    if (place == question.launch->environment.end()) continue;
    const ShellWord& said = place->second;
    if (said.text.find("expandable_segments:True") != std::string::npos &&
        !question.decides("strategy.expandable_segments"))
      translation.lines.push_back(
          {"strategy.expandable_segments", "true", name, said.line, "of the launch's environment"});
  }
}

}  // namespace

bool is_script(const std::string& file) {
  return file.ends_with(".py") || is_shell_script(file);
}

Document content_of(const std::string& file) {
  if (!is_script(file)) return open_source(file);
  Document document = parse_document("{}", file);
  document.set("script", escaped(read_file(file)));
  return document;
}

std::optional<Translation> translate_source(const std::string& data, const std::string& file,
                                            Settings settings) {
  const Opened opened = open(data, file, settings);
  if (opened.kind->translate == nullptr) {
    for (const std::string_view key : {set_tokens_setting, set_samples_setting})
      if (!said(settings, key).empty())
        throw UserError(
            "--tokens and --samples-in-set are for files of other programs: a scenario says "
            "job.tokens or job.samples");
    return std::nullopt;
  }
  SourceQuestion question{.data = data, .file = opened.file, .settings = settings};
  question.set_tokens = count_said(settings, set_tokens_setting, "--tokens");
  question.set_samples = count_said(settings, set_samples_setting, "--samples-in-set");
  if (opened.script) {
    question.launch = &opened.script->launch;
    question.earlier = opened.script->earlier;
  }
  try {
    refuse_unknown(question, opened);
    Translation translation = opened.kind->translate(question, opened.document);
    keep_launcher(question, translation);
    keep_allocator(question, translation);
    for (const UnknownArgument& each : opened.unknown)
      translation.keys.push_back(
          {each.key, each.word.line, KeyFate::without_effect, "not known without a run"});
    if (opened.script)
      translation.notes.insert(translation.notes.begin(), opened.script->notes.begin(),
                               opened.script->notes.end());
    return translation;
  } catch (const UserError& error) {
    throw UserError(blame_settings(error.problems(), settings));
  }
}

}  // namespace stepsim
