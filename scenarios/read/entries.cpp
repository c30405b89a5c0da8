#include "scenarios/read/entries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <tuple>
#include <utility>

#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/faults.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/called.hpp"
#include "workloads/layers/units.hpp"
#include "workloads/model/hf_cache.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/strategy/stack_operators.hpp"

namespace stepsim {
namespace {

// Returns whether the constants of the other attention kernels stand behind a prediction: they do
// with these two kernels alone.
bool attention_uses_shares(const Scenario& scenario) {
  const AttentionKernel kernel = attention_of(scenario.stack, scenario.strategy);
  return kernel == AttentionKernel::flex || kernel == AttentionKernel::sdpa_efficient;
}

bool moves_tokens(const Scenario& scenario) {
  const MoeKernel kernel = scenario.strategy.experts.kernel;
  return scenario.model.experts && (kernel == MoeKernel::grouped || kernel == MoeKernel::padded) &&
         !scenario.stack.fused.permute;
}

// A path that leads to no config.json, or a name that no model has.
void check_model(const Catalogue& data, const Table& root, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path path(name);
  const bool folder = fs::is_directory(path, failed);
  if (folder && !fs::exists(path / "config.json", failed) && !is_on(data, model_shelf, name))
    return root.problem("model", fmt::format("\"{}\" is a folder without config.json", name));
  if (!is_config_path(name)) {
    known(root, "model", "model", name, data, {model_shelf});
    return;
  }
  if (folder || fs::exists(path, failed)) return;
  if (is_hf_id(name)) return root.problem("model", unknown_id_text(data, name));
  const std::string near = did_you_mean(path.filename().string(), names_on(data, model_shelf));
  root.problem("model",
               fmt::format("no file or folder \"{}\", beside the scenario or here{}", name, near));
}

// The constants of an entry, named as a scenario calls them.
std::vector<NamedConstant> scoped(std::vector<NamedConstant> constants, std::string_view scope) {
  for (NamedConstant& constant : constants)
    constant.name = fmt::format("{}.{}", scope, constant.name);
  return constants;
}

// This is what a file of workloads/ says, and the constants in it.
template <class Value>
struct SharedFacts {
  Value value{};
  std::vector<NamedConstant> constants{};
};

// All scenarios share these files. What one says as it stands depends on nothing but its text, and
// is kept with it: most readings are of the same text as the last. `own`: what the stack says
// instead.
template <class Value>
SharedFacts<Value> shared_facts(const Catalogue& data, std::string_view scope,
                                Value (*read)(const Table&), const Readings& readings,
                                std::span<const Setting> own = {}) {
  auto& [said, last] = data.kept<std::pair<std::string, SharedFacts<Value>>>();
  const std::string file = data.file(fmt::format("workloads/{}.yaml", scope));
  std::string text = read_text(file);
  const bool given = std::ranges::any_of(
      readings.given, [&](const GivenConstant& each) { return each.name.starts_with(scope); });
  const bool as_it_stands = !readings.draw && !given && own.empty();
  if (as_it_stands && said == text) return last;
  Document document = under(parse_document(text, file), readings, scope);
  for (const auto& [key, value] : own) document.set(key, value);
  SharedFacts<Value> facts{read(document.root()), {}};
  document.finish();
  facts.constants = scoped(document.constants(), scope);
  if (as_it_stands) std::tie(said, last) = std::tie(text, facts);
  return facts;
}

}  // namespace

std::string beside(const std::string& file, const std::string& path) {
  const std::filesystem::path there = std::filesystem::path(file).parent_path() / path;
  std::error_code failed;
  const bool found = std::filesystem::is_regular_file(there, failed) ||
                     std::filesystem::exists(there / "config.json", failed);
  return found ? there.string() : path;
}

Names read_names(const Catalogue& data, const Table& root, const Table& cluster,
                 const std::string& scenario_file) {
  Names names;
  names.model = root.is_mapping("model") ? "" : root.text("model");
  if (const std::string near = beside(scenario_file, names.model);
      !names.model.empty() && is_config_path(near))
    names.model = near;
  names.model = resolve_model(data, names.model);
  read_block(std::optional(cluster), cluster_blocks().front(), names.cluster);
  try {
    constexpr std::int64_t most_gpus = 1 << 23;
    const auto all = cluster.integer_or("gpus", 0, 1, most_gpus);
    settle_machine(data, static_cast<std::uint32_t>(all), names.cluster);
  } catch (const UserError& error) {
    cluster.problem("gpus", error.what());
  }
  if (!names.cluster.platform.empty())
    names.cluster.platform = beside(scenario_file, names.cluster.platform);
  names.stack = root.text("stack");
  return names;
}

bool known(const Table& table, std::string_view key, std::string_view what, const std::string& name,
           const Catalogue& data, std::initializer_list<Shelf> shelves) {
  if (name.empty()) return false;
  if (std::ranges::any_of(shelves, [&](const Shelf& each) { return is_on(data, each, name); }))
    return true;
  std::vector<std::string> all;
  for (const Shelf& each : shelves) append(all, names_on(data, each));
  const bool machine = shelves.begin()->folder == node_shelf.folder;
  if (const std::string why = machine ? why_no_machine(data, name) : ""; !why.empty()) {
    table.problem(key, fmt::format("\"{}\": {}", name, why), Fault::form);
    return false;
  }
  table.problem(
      key,
      fmt::format("no {} \"{}\"{}", what, name, did_you_mean(name, all, shelves.begin()->plural())),
      Fault::form);
  return false;
}

Found find_entries(const Catalogue& data, const Table& root, const Table& cluster,
                   const Names& names) {
  const bool of_platform = !names.cluster.platform.empty();
  const bool node =
      (of_platform && names.cluster.name.empty()) ||
      (of_platform ? known(cluster, "node", "node", names.cluster.name, data, {node_shelf})
                   : known(cluster, "node", "cluster or node", names.cluster.name, data,
                           {node_shelf, cluster_shelf}));
  const bool network =
      names.cluster.network.empty() ||
      known(cluster, "network", "network", names.cluster.network, data, {network_shelf});
  const bool processor =
      names.cluster.processor.empty() ||
      known(cluster, "processor", "processor", names.cluster.processor, data, {processor_shelf});
  const std::size_t problems = root.problems();
  if (!names.model.empty()) check_model(data, root, names.model);
  const bool model =
      root.problems() == problems && (root.is_mapping("model") || !names.model.empty());
  return {model, node && network && processor,
          known(root, "stack", "stack", names.stack, data, {stack_shelf})};
}

Document under(Document document, const Readings& readings, std::string_view scope) {
  if (readings.draw) document.draw_constants(*readings.draw, scope);
  document.give_constants(readings.given, scope);
  return document;
}

void keep_constants(const Document& document, std::string_view scope, Scenario& scenario) {
  append(scenario.constants, scoped(document.constants(), scope));
}

void load_entries(const Catalogue& data, const Names& names, const Found& found,
                  const Readings& readings, Scenario& scenario) {
  if (found.model && !names.model.empty()) scenario.model = load_model(data, names.model);
  scenario.files.clear();
  if (is_config_path(names.model)) scenario.files.push_back(config_file(names.model));
  if (!names.cluster.platform.empty()) scenario.files.push_back(names.cluster.platform);
  if (found.cluster)
    scenario.cluster = load_cluster(data, names.cluster, readings.draw, readings.given);
  scenario.constants = scenario.cluster.constants;
  if (!found.stack) return;
  Document stack = open_entry(data, stack_shelf, names.stack);
  for (const auto& [key, value] : readings.stack) stack.set(key, value);
  stack = under(std::move(stack), readings, "stack");
  scenario.stack = read_stack(stack.root());
  scenario.cluster.node.host.core_speed.value.value /= scenario.stack.host.pace.number();
  if (scenario.stack.unties_head) scenario.model.tied_embeddings = false;
  const auto own_operators = operators_of_stack(stack.root());
  stack.finish();
  auto attention = shared_facts(data, "attention", read_attention_shares, readings);
  auto experts = shared_facts(data, "experts", read_expert_shares, readings);
  auto mixers = shared_facts(data, "mixers", read_mixers, readings);
  auto operators = shared_facts(data, "operators", read_operators, readings, own_operators);
  scenario.stack.attention_shares = std::move(attention.value);
  scenario.stack.expert_shares = std::move(experts.value);
  scenario.stack.mixers = std::move(mixers.value);
  scenario.stack.operators = std::move(operators.value);
  if (attention_uses_shares(scenario)) append(scenario.constants, attention.constants);
  if (moves_tokens(scenario)) append(scenario.constants, experts.constants);
  if (scenario.model.mixer) append(scenario.constants, mixers.constants);
  append(scenario.constants, operators.constants);
  keep_constants(stack, "stack", scenario);
}

void load_mixers(const Catalogue& data, const MaybeDraw& draw, EngineStack& engine) {
  const Readings readings{draw, {}, {}};
  engine.mixers.rates = shared_facts(data, "mixers", read_mixers, readings).value;
  engine.mixers.operators = shared_facts(data, "operators", read_operators, readings).value;
}

std::vector<std::string> overlay_files(const Catalogue& data, const Names& names,
                                       const Found& found, const Scenario& scenario) {
  std::vector<std::string> files;
  if (data.folders().size() == 1) return files;
  const auto add = [&](std::vector<std::string> more) {
    std::move(more.begin(), more.end(), std::back_inserter(files));
  };
  if (found.cluster) add(overlay_files(data, scenario.cluster));
  if (found.stack) add(overlay_files(data, stack_shelf, names.stack));
  if (found.model && !names.model.empty() && !is_config_path(names.model))
    add(overlay_files(data, model_shelf, names.model));
  for (const std::string_view shared : {"attention", "experts", "mixers", "operators"})
    if (const std::string file = data.file(fmt::format("workloads/{}.yaml", shared));
        data.is_overlay(file))
      files.push_back(file);
  return files;
}

void load_optimizer(const Catalogue& data, const Table& strategy, const Readings& readings,
                    Scenario& scenario) {
  Strategy& s = scenario.strategy;
  const std::string name = s.optimizer.name;
  if (!known(strategy, "optimizer", "optimizer", name, data, {optimizer_shelf})) return;
  const std::string scope = "operators." + name;
  const Document document = under(open_entry(data, optimizer_shelf, name), readings, scope);
  s.optimizer = read_optimizer(document.root());
  document.finish();
  keep_constants(document, scope, scenario);
  scenario.smaller_optimizer.reset();
  if (const std::string& smaller = s.optimizer.smaller; !smaller.empty()) {
    const Document other = open_entry(data, optimizer_shelf, smaller);
    scenario.smaller_optimizer = read_optimizer(other.root());
    other.finish();
  }
  const std::vector<UpdateKernels>& kernels = s.optimizer.kernels;
  if (!strategy.has("optimizer_kernels") && !kernels.empty()) s.update_kernels = kernels.front();
}

void load_adapters(const Catalogue& data, const Table& strategy, const Readings& readings,
                   Scenario& scenario) {
  Lora& lora = scenario.strategy.lora;
  const auto table = strategy.table_if("lora");
  if (!table || lora.rank == 0) return;
  const auto load = [&](std::string_view key, const Shelf& shelf, const std::string& name,
                        auto read, auto& value) {
    if (!known(*table, key, shelf.singular, name, data, {shelf})) return;
    const std::string scope = fmt::format("{}.{}", key, name);
    const Document document = under(open_entry(data, shelf, name), readings, scope);
    value = read(document.root());
    document.finish();
    keep_constants(document, scope, scenario);
  };
  load("method", adapter_shelf, std::string(lora.method.name), read_adapter_method, lora.method);
  if (lora.quantised.packs())
    load("quantised", format_shelf, std::string(lora.quantised.name), read_format, lora.quantised);
}

void load_precision(const Catalogue& data, const Table& strategy, const Readings& readings,
                    bool machine, Scenario& scenario) {
  Strategy& s = scenario.strategy;
  const std::string name = s.precision.name;
  if (!known(strategy, "precision", "precision", name, data, {precision_shelf})) return;
  const std::string scope = "precision." + name;
  const Document document = under(open_entry(data, precision_shelf, name), readings, scope);
  s.precision = read_precision(document.root());
  document.finish();
  keep_constants(document, scope, scenario);
  // DeepSpeed's partitions are copies even of 32 bits; others update the parameters themselves.
  const bool copies = s.sharding != Sharding::zero0 && !is_fsdp(s.sharding) && !s.distributed.used;
  if (s.precision.whole() && !copies) s.master_weights = false;
  const Gpu& gpu = scenario.cluster.gpu;
  if (!machine || has_units(gpu, s.precision)) return;
  std::vector<std::string> others;
  for (const std::string& other : names_on(data, gpu_shelf))
    if (has_units(read_gpu(open_entry(data, gpu_shelf, other).root()), s.precision))
      others.push_back(other);
  strategy.problem("precision", fmt::format("{} has no units for products of {}; these have: {}",
                                            gpu.name, name, fmt::join(others, ", ")));
}

void load_faults(const Catalogue& data, const Table& cluster, const Readings& readings,
                 Scenario& scenario) {
  if (!asks_for_faults(cluster)) return;
  const Document file =
      under(read_document(data.file("topology/variation.yaml")), readings, "variation");
  const Variation variation{file.root().constant<Ratio>("gpu_time")};
  file.finish();
  if (cluster.has("vary")) keep_constants(file, "variation", scenario);
  read_faults(cluster, variation, scenario);
}

}  // namespace stepsim
