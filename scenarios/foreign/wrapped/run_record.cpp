#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_gpus = 1 << 12;

std::string text_in(const Table& table, std::string_view key) {
  return is_text(table, key) ? table.text_or(key, "") : "";
}

// Takes the GPUs of a record of the machine.
void read_gpus(const Table& machine, std::string_view where, WrappedSource& source) {
  if (!source.gpu.empty()) return;
  source.gpu = text_in(machine, "gpu");
  if (!source.gpu.empty()) source.why_gpu = fmt::format("{} names {}", where, source.gpu);
  for (const std::string_view key : {"gpu_count", "gpuCount"})
    if (is_text(machine, key) && !source.gpus) {
      source.gpus = machine.integer_or(key, 1, 0, most_gpus);
      if (*source.gpus == 0) source.gpus.reset();
      if (source.gpus)
        source.why_gpus =
            fmt::format("{} counts {} GPU{}", where, *source.gpus, *source.gpus == 1 ? "" : "s");
    }
}

bool is_nothing(const std::string& value) {
  return value.empty() || value == "null" || value == "~" || value == "[]" || value == "{}" ||
         value == "None" || value == "\"None\"" || value == "'None'";
}

class ConfigReader {
 public:
  ConfigReader(const Catalogue& data, WrappedSource& source) : source_(source) {
    const Document facts = import_facts(data, "programs/trl/trl");
    const Table root = facts.root();
    for (const std::string_view list : {"read", "used"})
      for (const std::string& key : root.texts_or(list)) known_.insert(key);
    for (const std::string_view block : {"keys", "also_called", "not_modelled"})
      if (root.is_mapping(block))
        for (const std::string& key : root.table(block).keys()) known_.insert(key);
    const Table told = root.table("told_by");
    for (const std::string& method : told.keys())
      for (const std::string& key : told.table(method).texts("keys")) known_.insert(key);
  }

  void read(const Table& root) {
    of_model_ = root.has("model_type");
    for (const std::string& key : root.keys()) {
      if (key == "_wandb" || !root.is_mapping(key)) continue;
      const Table entry = root.table(key);
      if (!entry.has("value")) continue;
      const int line = entry.origin("value")->line;
      if (key == "peft_config" && entry.is_mapping("value"))
        read_adapters(entry.table("value"), line);
      else if (key == "quantization_config" && entry.is_mapping("value"))
        read_bits(entry.table("value"), line);
      else
        put(key, entry.one_line("value"), line);
    }
    if (!has("model_name_or_path") && !path_.empty())
      source_.settings.push_back({"model_name_or_path", path_, path_line_});
    const bool of_trl =
        std::ranges::any_of(std::array{"packing", "dataset_text_field", "max_seq_length",
                                       "num_generations", "loss_type", "beta", "desirable_weight"},
                            [&](const char* key) { return has(key); });
    source_.program = of_trl ? "" : "Trainer";
  }

 private:
  bool has(std::string_view key) const {
    return std::ranges::any_of(source_.settings,
                               [&](const NamedValue& each) { return each.key == key; });
  }

  void put(const std::string& key, const std::string& value, int line) {
    // A model's own settings stand among the arguments: they are nobody's, and 20 is the length of
    // its answers.
    constexpr std::string_view length_of_answers = "20";
    if (!known_.contains(key) && key != "_name_or_path" && key != "base_model_name_or_path") return;
    if (is_nothing(value) || (key == "max_length" && value == length_of_answers)) return;
    if (key == "seq_length" && of_model_) return;  // where Bloom's positions end
    if (key == "_name_or_path" || key == "base_model_name_or_path") {
      path_ = value;
      path_line_ = line;
      return;
    }
    source_.settings.push_back({key, value, line});
  }

  // Of several adapters the first: {default: {r: 16, ...}}; or the adapter's settings themselves.
  void read_adapters(const Table& all, int line) {
    const std::vector<std::string> names = all.keys();
    const bool by_name = !all.has("r") && !names.empty() && all.is_mapping(names.front());
    const Table adapter = by_name ? all.table(names.front()) : all;
    source_.settings.push_back({"use_peft", "true", line});
    for (const std::string key : {"r", "target_modules", "modules_to_save"})
      if (adapter.has(key) && !is_nothing(adapter.one_line(key)))
        source_.settings.push_back({"lora_" + key, adapter.one_line(key), line});
    if (const std::string base = text_in(adapter, "base_model_name_or_path"); !base.empty()) {
      path_ = adapter.one_line("base_model_name_or_path");
      path_line_ = line;
    }
  }

  void read_bits(const Table& said, int line) {
    for (const char* key : {"load_in_4bit", "load_in_8bit"})
      if (is_text(said, key) &&
          (said.text_or(key, "") == "true" || said.text_or(key, "") == "True"))
        source_.settings.push_back({key, "true", line});
  }

  WrappedSource& source_;
  std::set<std::string> known_{};  // of arguments that mean something
  std::string path_{};
  int path_line_ = 0;
  bool of_model_ = false;  // a model's own settings are among them
};

// A module of a package that is installed: ".../site-packages/axolotl/cli/train.py".
std::string program_words(const std::string& program) {
  constexpr std::string_view packages = "site-packages/";
  const std::size_t at = program.find(packages);
  if (program.starts_with("-m ")) return "-m " + shell_quoted(program.substr(3));
  if (at == std::string::npos || !program.ends_with(".py")) return shell_quoted(program);
  std::string module = program.substr(at + packages.size());
  module.resize(module.size() - 3);
  std::replace(module.begin(), module.end(), '/', '.');
  return "-m " + shell_quoted(module);
}

}  // namespace

std::optional<WrappedSource> read_run_config(const Catalogue& data, std::string_view text,
                                             const std::string& file) {
  if (!text.starts_with("wandb_version:") && !text.starts_with("_wandb:") &&
      text.find("\n_wandb:") == std::string_view::npos &&
      text.find("\nwandb_version:") == std::string_view::npos)
    return std::nullopt;
  const Document document = parse_document(text, file);
  const Table root = document.root();
  WrappedSource source{.title = "a config.yaml of Weights & Biases"};
  ConfigReader(data, source).read(root);
  source.nothing = "it has no arguments of a trainer of transformers or TRL in it";
  if (!holds(source.settings, "per_device_train_batch_size", &NamedValue::key)) return source;
  source.kind = "trl";
  // Newer releases keep the machine beside the settings: {e: {RUN: {gpu: ...}}}.
  if (const auto own = root.table_if("_wandb"))
    if (const auto value = own->table_if("value"))
      if (const auto machines = value->table_if("e"); machines && value->is_mapping("e"))
        for (const std::string& run : machines->keys())
          if (machines->is_mapping(run)) read_gpus(machines->table(run), "the run", source);
  const std::string beside =
      (std::filesystem::path(file).parent_path() / "wandb-metadata.json").string();
  if (source.gpu.empty() && is_file(beside)) {
    const Document machine = parse_document(read_text(beside), beside);
    read_gpus(machine.root(), "wandb-metadata.json", source);
  }
  if (text.find("is_jupyter_run: true") != std::string_view::npos) {
    source.gpus = 1;
    source.why_gpus = "it was started in a notebook, which is one process";
  }
  return source;
}

std::optional<WrappedSource> read_run_metadata(std::string_view text, const std::string& file) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  if (!has("\"startedAt\"") || !has("\"program\"") || !has("\"python\"")) return std::nullopt;
  const Document document = parse_document(text, file);
  const Table root = document.root();
  WrappedSource source{.title = "a wandb-metadata.json"};
  read_gpus(root, "the run", source);
  std::string program = text_in(root, "program");
  const std::string own = text_in(root, "codePath");
  const auto folder = std::filesystem::path(file).parent_path();
  if (!own.empty() && is_file((folder / own).string())) program = own;
  std::string words = program_words(program);
  bool says_model = is_file((folder / program).string());
  if (root.has("args") && !is_text(root, "args") && !root.is_mapping("args"))
    for (const std::string& each : root.texts("args")) {
      words += " " + shell_quoted(each);
      says_model = says_model || each.find("model") != std::string::npos ||
                   each.find(".y") != std::string::npos || each.find("config") != std::string::npos;
    }
  const auto origin = root.origin("program");
  if (says_model)
    source.shell =
        in_line(origin ? origin->line : 1,
                source.gpus ? fmt::format("torchrun --nproc_per_node={} {}\n", *source.gpus, words)
                            : fmt::format("python {}\n", words));
  source.nothing = fmt::format(
      "it names {}, which is not here, and no model among its arguments: config.yaml beside it has "
      "all of them",
      program);
  return source;
}

}  // namespace stepsim
