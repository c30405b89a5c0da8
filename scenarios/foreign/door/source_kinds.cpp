#include "scenarios/foreign/door/source_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

struct Translator {
  std::string_view kind;
  Translation (*translate)(const SourceQuestion&, const Document&);
};
constexpr std::array translators{Translator{"axolotl", translate_axolotl},
                                 Translator{"deepspeed", translate_deepspeed},
                                 Translator{"openrlhf", translate_openrlhf},
                                 Translator{"autotrain", translate_autotrain},
                                 Translator{"slime", translate_slime},
                                 Translator{"megatron", translate_megatron},
                                 Translator{"verl", translate_verl},
                                 Translator{"verl-sft", translate_verl_sft},
                                 Translator{"nemo-rl", translate_nemo_rl},
                                 Translator{"open-instruct-tuning", translate_open_instruct_tuning},
                                 Translator{"open-instruct", translate_open_instruct},
                                 Translator{"automodel", translate_automodel},
                                 Translator{"gpt-neox", translate_gpt_neox},
                                 Translator{"llm-foundry", translate_llm_foundry},
                                 Translator{"torchtune", translate_torchtune},
                                 Translator{"nanotron", translate_nanotron},
                                 Translator{"litgpt", translate_litgpt},
                                 Translator{"torchtitan", translate_torchtitan},
                                 Translator{"llama-factory", translate_llama_factory},
                                 Translator{"llama-factory-v1", translate_llama_factory_v1},
                                 Translator{"ms-swift", translate_ms_swift},
                                 Translator{"megatron-swift", translate_megatron_swift},
                                 Translator{"trl", translate_trl}};

SourceKind read_kind(const std::string& name, const Table& table) {
  SourceKind kind{.name = name,
                  .title = table.text("title"),
                  .table = table.text_or("table", ""),
                  .marks = table.texts_or("marks"),
                  .beside = table.texts_or("beside"),
                  .programs = table.texts_or("programs"),
                  .takes_file = table.flag_or("takes_file", false),
                  .toml = table.flag_or("toml", false),
                  .never = table.texts_or("never"),
                  .sets_keys = table.flag_or("sets_keys", false),
                  .file_option = table.text_or("file_option", ""),
                  .first_word = table.text_or("first_word", ""),
                  .arguments = table.texts_or("arguments"),
                  .told_beside = table.texts_or("told_beside"),
                  .no_programs = table.texts_or("no_programs"),
                  .by_file = table.flag_or("by_file", false),
                  .low_lines = table.flag_or("low_lines", false),
                  .goes_on = table.flag_or("goes_on", false)};
  const auto by = std::ranges::find(translators, name, &Translator::kind);
  if (by != translators.end()) kind.translate = by->translate;
  return kind;
}

// Files that people try, and that hold no training.
struct OtherFile {
  std::vector<std::string> keys;
  std::string title;
};
struct FilesThatAreKnown {
  std::vector<SourceKind> kinds;
  std::vector<OtherFile> others;
};

const FilesThatAreKnown& known_files() {
  static const FilesThatAreKnown all = [] {
    constexpr const char* file = "source_kinds.yaml";
    const Document document = parse_document(door_asset(file), file);
    const Table kinds = document.root().table("kinds");
    FilesThatAreKnown known;
    for (const std::string& name : kinds.keys())
      known.kinds.push_back(read_kind(name, kinds.table(name)));
    for (const Table& other : document.root().tables("others"))
      known.others.push_back({other.texts("keys"), other.text("title")});
    document.finish();
    return known;
  }();
  return all;
}

template <class Words>
std::string first_in(const std::vector<std::string>& keys, const Words& words) {
  for (const std::string& key : keys)
    if (std::find(words.begin(), words.end(), key) != words.end()) return key;
  return "";
}

// A name of a configuration alone, as Hydra takes it, is none of a file.
bool goes_on(const Document& document) {
  const Table root = document.root();
  const std::string said = root.has("defaults") ? root.one_line("defaults") : "";
  return said.ends_with(".yaml") || said.ends_with(".yaml]");
}

std::string mark_of(const SourceKind& kind, const Document& document,
                    const std::vector<std::string>& keys) {
  if (kind.goes_on && goes_on(document)) return "defaults";
  const std::string mark = first_in(keys, kind.marks);
  return kind.beside.empty() || !first_in(keys, kind.beside).empty() ? mark : "";
}

std::string none_of_these(const std::vector<std::string>& keys) {
  for (const OtherFile& other : known_files().others)
    if (!first_in(other.keys, keys).empty()) return fmt::format("is {}", other.title);
  std::vector<std::string> titles;
  for (const SourceKind& kind : known_kinds())
    if (!kind.marks.empty()) titles.emplace_back(kind.title);
  return fmt::format(
      "looks like nothing that is read here: a scenario has cluster, stack, job and strategy; also "
      "read are {}, of AutoTrain, NeMo 1 and Primus, a notebook, a Python file, a shell script, a "
      "Makefile, a Dockerfile, a task of SkyPilot, a job of Kubernetes and a run of Weights & "
      "Biases; settings of a program of your own are read with it: give the program, or the script "
      "that starts it",
      fmt::join(titles.begin() + 1, titles.end(), ", "));
}

}  // namespace

const std::vector<SourceKind>& known_kinds() {
  return known_files().kinds;
}

std::vector<std::string> source_kinds() {
  return texts_of(known_kinds(), &SourceKind::name);
}

const SourceKind& kind_of(const Document& document, std::string_view asked) {
  const std::vector<SourceKind>& all = known_kinds();
  if (!asked.empty()) {
    const auto place = std::find_if(all.begin(), all.end(),
                                    [&](const SourceKind& kind) { return kind.name == asked; });
    if (place != all.end()) return *place;
    const std::vector<std::string> names = source_kinds();
    throw UserError(fmt::format("--from: expected {}, found \"{}\"{}", one_of(names), asked,
                                did_you_mean(asked, names)));
  }
  const Table root = document.root();
  const std::vector<std::string> keys = root.keys();
  std::vector<std::pair<const SourceKind*, std::string>> found;
  const bool toml = document.file().ends_with(".toml");
  for (const SourceKind& kind : all)
    if (std::string mark = mark_of(kind, document, keys);
        !mark.empty() && toml == kind.toml && first_in(keys, kind.never).empty())
      found.emplace_back(&kind, mark);
  if (found.size() == 1) return *found.front().first;
  // A file that has little of a scenario is a scenario with mistakes, and its reader names them. A
  // file that has much else is none.
  const auto heads = std::count_if(keys.begin(), keys.end(), [](const std::string& key) {
    return std::ranges::find(scenario_heads, key) != scenario_heads.end();
  });
  if (found.empty() && !toml &&
      (keys.empty() || 2 * heads >= static_cast<std::ptrdiff_t>(keys.size())))
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

bool is_called(const SourceKind& kind, const Launch& launch) {
  const auto is_file = [](const ShellWord& word) {
    return word.text.ends_with(".yaml") || word.text.ends_with(".yml");
  };
  if (kind.by_file && (launch.arguments.empty() || !is_file(launch.arguments.front())))
    return false;
  return std::any_of(kind.programs.begin(), kind.programs.end(), [&](const std::string& program) {
    return fnmatch(program.c_str(), launch.program.c_str(), 0) == 0;
  });
}

bool is_told(const SourceKind& kind, const Launch& launch) {
  const auto any_of = [&](const auto& names) {
    return std::ranges::any_of(launch.arguments, [&](const ShellWord& word) {
      return std::ranges::any_of(names, [&](const std::string& name) {
        const std::string option = fmt::format("--{}", name);
        const std::string said = kind.low_lines ? low_lined(word).text : word.text;
        return said == option || said.starts_with(option + "=") ||
               (kind.sets_keys && said.starts_with(fmt::format("{}=", name)));
      });
    });
  };
  const auto is_it = [&](const std::string& program) {
    return fnmatch(program.c_str(), launch.program.c_str(), 0) == 0;
  };
  if (std::ranges::any_of(kind.no_programs, is_it)) return false;
  return any_of(kind.arguments) && (kind.told_beside.empty() || any_of(kind.told_beside));
}

// Finds the kind by the program's name, else by its arguments.
const SourceKind* kind_of(const Launch& launch, const std::string& asked) {
  for (const bool by_name : {true, false})
    for (const SourceKind& kind : known_kinds())
      if ((asked.empty() || asked == kind.name) &&
          (by_name ? is_called(kind, launch) : is_told(kind, launch)))
        return &kind;
  return nullptr;
}

std::string known_programs() {
  std::vector<std::string> names;
  for (const SourceKind& kind : known_kinds())
    if (!kind.programs.empty() || !kind.arguments.empty()) names.emplace_back(kind.name);
  return one_of(names);
}

const SourceKind* python_kind() {
  const auto place = std::find_if(known_kinds().begin(), known_kinds().end(),
                                  [](const SourceKind& kind) { return kind.name == "trl"; });
  return &*place;
}

}  // namespace stepsim
