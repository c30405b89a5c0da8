#include <array>
#include <filesystem>
#include <sstream>

#include "analysis/studies/fidelity/memory_comparison.hpp"
#include "scenarios/foreign/deepspeed/deepspeed.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/foreign/logs/kernel_profile.hpp"
#include "scenarios/foreign/logs/memory_snapshot.hpp"
#include "scenarios/foreign/logs/trainer_log.hpp"
#include "scenarios/foreign/programs/accelerate/accelerate.hpp"
#include "scenarios/foreign/text/python_values.hpp"
#include "scenarios/foreign/text/shell_words.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/anchor.hpp"
#include "scenarios/read/faults.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "tests/fuzz/targets.hpp"
#include "topology/catalog.hpp"
#include "workloads/model/hf_config.hpp"

namespace stepsim::fuzz {
namespace {

const std::string tiny = data.file("tests/cli/tiny.yaml");

void read_scenario_text(const std::string& bytes) {
  parse_scenario(data, bytes, "file.yaml");
}

// "key=value" in each line, as --set says them, over a sound scenario.
void read_settings(const std::string& bytes) {
  std::vector<Setting> settings;
  for (std::size_t from = 0; from < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', from), bytes.size());
    const std::string line = bytes.substr(from, end - from);
    const std::size_t sign = std::min(line.find('='), line.size());
    settings.emplace_back(line.substr(0, sign), line.substr(std::min(sign + 1, line.size())));
    from = end + 1;
  }
  load_scenario(data, tiny, settings);
}

// A catalogue of the user's own with one entry in it: the first byte says which.
void read_entry(const std::string& bytes) {
  struct Entry {
    std::string_view file;
    std::vector<Setting> uses;
  };
  static const std::array entries{
      Entry{"topology/gpus/mi300x.yaml", {}},
      Entry{"topology/nodes/mi300x-8.yaml", {}},
      Entry{"topology/networks/roce-mi300x.yaml", {{"cluster.nodes", "2"}}},
      Entry{"topology/clusters/mine.yaml", {{"cluster", "{node: mine}"}}},
      Entry{"topology/variation.yaml", {}},
      Entry{"workloads/stacks/deepspeed-hf-rocm.yaml", {}},
      Entry{"workloads/operators.yaml", {}},
      Entry{"workloads/models/mine.yaml", {{"model", "mine"}}},
      Entry{"workloads/optimizers/mine.yaml", {{"strategy.optimizer", "mine"}}},
      Entry{"workloads/precisions/mine.yaml", {{"strategy.precision", "mine"}}},
      Entry{"scenarios/recipes/mine.yaml", {{"recipe", "mine"}}},
      Entry{"topology/processors/mine.yaml", {{"cluster.processor", "mine"}}}};
  if (bytes.empty()) return;
  const Entry& entry = entries[static_cast<unsigned char>(bytes.front()) % entries.size()];
  namespace fs = std::filesystem;
  static const fs::path folder = fs::path(as_file("scenario.yaml", "")).parent_path();
  const std::string overlay = "overlay-" + std::to_string(&entry - entries.data());
  fs::create_directories((folder / overlay / entry.file).parent_path());
  as_file(overlay + "/" + std::string(entry.file), std::string_view(bytes).substr(1));
  load_scenario(Catalogue({STEPSIM_SOURCE_DATA, (folder / overlay).string()}), tiny, entry.uses);
}

void read_model(const std::string& bytes) {
  const Document document = parse_document(bytes, "config.json");
  const Model model = read_hf_config(document.root(), "mine");
  document.finish(Leftovers::allowed);
  count_parameters(model);
}

void read_deepspeed_file(const std::string& bytes) {
  static const Scenario base = load_scenario(data, tiny);
  read_deepspeed(as_file("deepspeed.json", bytes), {.data = data,
                                                    .strategy = base.strategy,
                                                    .job = base.job,
                                                    .model = base.model,
                                                    .ranks = 8,
                                                    .optimizers = {"adamw", "muon"}});
}

// Files of other programs by their endings; what a file of JSON does not hold is set.
void read_source(const std::string& file, const std::string& bytes,
                 const std::vector<Setting>& settings = {}) {
  if (translate_source(data, as_file(file, bytes), settings) && is_turn_of(bytes))
    load_scenario(data, as_file(file, bytes), settings);
}
void read_yaml_source(const std::string& bytes) {
  read_source("source.yaml", bytes);
}
void read_toml_source(const std::string& bytes) {
  read_source("source.toml", bytes);
}
void read_script_source(const std::string& bytes) {
  read_source("source.sh", bytes);
}
void read_python_source(const std::string& bytes) {
  read_source("source.py", bytes);
}
void read_json_source(const std::string& bytes) {
  read_source("source.json", bytes, {{"model", "llama-3.2-1b"}, {"cluster", "{node: h100-8}"}});
}

// What wraps a training: the first byte says which kind of file it is.
void read_wrapping(const std::string& bytes) {
  constexpr std::array files{"source.ipynb", "sky.yaml",       "Makefile",
                             "Dockerfile",   "modal_train.py", "wandb-metadata.json",
                             "config.yaml"};
  if (!bytes.empty())
    read_source(files[static_cast<unsigned char>(bytes.front()) % files.size()], bytes.substr(1));
}

void read_accelerate_file(const std::string& bytes) {
  read_accelerate(data, as_file("accelerate.yaml", bytes));
}

void read_shell(const std::string& bytes) {
  const std::vector<std::pair<std::string, std::string>> given{{"1", "model"}};
  read_shell_script(bytes, "file.sh", given);
}

void follow_python(const std::string& bytes) {
  const PythonFile file = read_python(bytes, "file.py");
  for (const PythonCall& call :
       calls_in(file, [](const std::string& name) { return name.size() < 24; }))
    for (const PythonCall::Keyword& keyword : call.keywords)
      value_of(file, place_of(call), keyword.value);
}

void read_log(const std::string& bytes) {
  const TrainerLog log = read_trainer_log(bytes, "file.log");
  phase_of(log);
  if (log.profile) times_of(*log.profile, data);
}

void read_trace(const std::string& bytes) {
  std::istringstream file(bytes);
  times_of(read_kernel_trace(file, "trace.json"), data);
}

void read_anchor_file(const std::string& bytes) {
  anchor_text(parse_anchor(bytes, "file.anchor.yaml"));
}

void read_fault(const std::string& bytes) {
  parse_fault_kind(bytes, "file.yaml", "file");
}

void read_snapshot(const std::string& bytes) {
  static const FrameRules rules = frame_rules(data);
  real_memory(load_memory_snapshot(as_file("snapshot.pickle", bytes)), rules);
}

constexpr Target targets[]{{"scenario", read_scenario_text},
                           {"settings", read_settings},
                           {"entry", read_entry},
                           {"model", read_model},
                           {"deepspeed", read_deepspeed_file},
                           {"source-yaml", read_yaml_source},
                           {"source-json", read_json_source},
                           {"source-toml", read_toml_source},
                           {"source-script", read_script_source},
                           {"source-python", read_python_source},
                           {"source-wrapping", read_wrapping},
                           {"accelerate", read_accelerate_file},
                           {"shell", read_shell},
                           {"python", follow_python},
                           {"log", read_log},
                           {"trace", read_trace},
                           {"anchor", read_anchor_file},
                           {"fault", read_fault},
                           {"snapshot", read_snapshot}};

}  // namespace

std::span<const Target> scenario_targets() {
  return targets;
}

}  // namespace stepsim::fuzz
