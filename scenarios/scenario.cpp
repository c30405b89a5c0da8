#include "scenarios/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.hpp"
#include "workloads/model_catalog.hpp"

namespace stepsim {
namespace {

template <class Enum, std::size_t N>
Enum choice(const Table& table, std::string_view key, const std::array<std::string_view, N>& names,
            Enum fallback) {
  if (!table.has(key)) return fallback;
  const std::vector<std::string> words(names.begin(), names.end());
  const std::string word = table.choice(key, words);
  const auto place = std::find(words.begin(), words.end(), word);
  return place == words.end() ? fallback : static_cast<Enum>(place - words.begin());
}

// DeepSpeed's own names and defaults.
ZeroKeys read_zero_keys(const Table& table, Sharding sharding) {
  constexpr double most = 1e12;
  ZeroKeys keys;
  keys.overlap_comm = table.flag_or("overlap_comm", sharding == Sharding::zero3);
  keys.reduce_bucket = table.number_or("reduce_bucket_size", keys.reduce_bucket, 1, most);
  keys.prefetch_bucket =
      table.number_or("stage3_prefetch_bucket_size", keys.prefetch_bucket, 0, most);
  keys.persistence_threshold =
      table.number_or("stage3_param_persistence_threshold", keys.persistence_threshold, 0, most);
  keys.max_live = table.number_or("stage3_max_live_parameters", keys.max_live, 0, most);
  keys.max_reuse = table.number_or("stage3_max_reuse_distance", keys.max_reuse, 0, most);
  keys.sub_group = table.number_or("sub_group_size", keys.sub_group, 0, most);
  keys.leaf_modules = table.flag_or("leaf_modules", keys.leaf_modules);
  return keys;
}

Strategy read_strategy(const Table& table) {
  Strategy strategy;
  strategy.sharding = choice(table, "zero", sharding_names, Sharding::zero3);
  strategy.checkpointing = choice(table, "checkpointing", checkpointing_names, Checkpointing::full);
  strategy.optimizer = choice(table, "optimizer", optimizer_names, OptimizerKind::adamw);
  strategy.master_weights = table.flag_or("master_weights", true);
  if (const auto moe = table.table_if("moe")) {
    strategy.moe_kernel = choice(*moe, "kernel", moe_kernel_names, MoeKernel::loop);
    strategy.expert_parallel = moe->integer_or("expert_parallel", 1, 1, 1 << 16);
    strategy.capacity_factor = moe->number_or("capacity_factor", 1, 0.1, 100);
  }
  if (const auto offload = table.table_if("offload")) {
    strategy.optimizer_place = choice(*offload, "optimizer", offload_names, Offload::none);
    strategy.parameter_place = choice(*offload, "parameters", offload_names, Offload::none);
  }
  strategy.zero.overlap_comm = strategy.sharding == Sharding::zero3;
  if (const auto keys = table.table_if("zero_optimization"))
    strategy.zero = read_zero_keys(*keys, strategy.sharding);
  return strategy;
}

Job read_job(const Table& table) {
  Job job;
  job.method = choice(table, "method", method_names, Method::sft);
  job.reference_model = table.flag_or("reference_model", true);
  job.sequence = table.integer("sequence", 1, 1 << 24);
  job.micro_batch = table.integer_or("micro_batch", 1, 1, 1 << 16);
  job.accumulation = table.integer_or("gradient_accumulation", 1, 1, 1 << 16);
  job.packed = table.flag_or("packing", true);
  job.fill = table.number_or("fill", 1, 0.001, 1);
  job.tokens = table.number_or("tokens", 0, 0, 1e18);
  job.optimizer_steps = table.number_or("optimizer_steps", 0, 0, 1e12);
  return job;
}

Measured read_measured(const Table& table) {
  Measured measured;
  if (table.has("wall")) measured.wall = table.quantity<Seconds>("wall");
  if (table.has("step_time")) measured.step_time = table.quantity<Seconds>("step_time");
  if (table.has("memory")) measured.memory = table.quantity<Bytes>("memory");
  if (table.has("tokens_per_second_per_gpu"))
    measured.tokens_per_second_per_gpu = table.number("tokens_per_second_per_gpu", 0, 1e9);
  measured.source = table.text("source");
  table.text_or("note", "");
  return measured;
}

struct ClusterWords {
  ClusterChoice choice;
  std::string stack;
};

ClusterWords read_cluster(const Table& root) {
  const Table table = root.table("cluster");
  ClusterWords words;
  words.choice.name = table.text("node");
  words.choice.nodes = static_cast<std::uint32_t>(table.integer_or("nodes", 1, 1, 1 << 20));
  words.choice.network = table.text_or("network", "");
  words.stack = root.text("stack");
  return words;
}

// What DeepSpeed itself rejects, said before anything is simulated.
void check(const Scenario& scenario, const std::string& path) {
  std::vector<Problem> problems;
  const auto reject = [&](std::string key, std::string message) {
    problems.push_back({path, 0, std::move(key), std::move(message)});
  };
  const Strategy& s = scenario.strategy;
  const std::int64_t ranks = scenario.cluster.ranks();
  const bool stage3 = s.sharding == Sharding::zero3;
  if (s.expert_parallel > 1 && s.moe_kernel != MoeKernel::tutel)
    reject("strategy.moe.expert_parallel", "needs a kernel that exchanges tokens: kernel: tutel");
  if (s.expert_parallel > 1 && !scenario.model.experts)
    reject("strategy.moe.expert_parallel", scenario.model.name + " has no experts");
  if (ranks % s.expert_parallel != 0)
    reject("strategy.moe.expert_parallel",
           fmt::format("{} does not divide {} ranks", s.expert_parallel, ranks));
  if (scenario.model.experts && scenario.model.experts->count % s.expert_parallel != 0)
    reject("strategy.moe.expert_parallel",
           fmt::format("{} does not divide {} experts", s.expert_parallel,
                       scenario.model.experts->count));
  if (s.expert_parallel > 1 && (stage3 || s.sharding == Sharding::fsdp))
    reject("strategy.moe.expert_parallel",
           "DeepSpeed's own expert parallelism works with zero: 1 or 2 only");
  if (s.parameter_place != Offload::none && !stage3)
    reject("strategy.offload.parameters", "needs zero: 3");
  if (s.optimizer_place != Offload::none &&
      (s.sharding == Sharding::fsdp || s.sharding == Sharding::zero0))
    reject("strategy.offload.optimizer", "is modelled for zero: 1, 2 and 3");
  if (!problems.empty()) throw UserError(std::move(problems));
}

}  // namespace

Scenario load_scenario(const std::string& data, const std::string& path,
                       std::span<const Setting> settings) {
  Scenario scenario;
  Document document = read_document(path);
  for (const auto& [key, value] : settings) document.set(key, value);
  scenario.text = document.canonical();
  const Table root = document.root();
  scenario.name = root.text("name");
  root.text_or("note", "");
  const std::string model = root.text("model");
  const ClusterWords words = read_cluster(root);
  scenario.job = read_job(root.table("job"));
  scenario.strategy = read_strategy(root.table("strategy"));
  if (const auto measured = root.table_if("measured")) scenario.measured = read_measured(*measured);
  document.finish();

  scenario.model = load_model(data, model);
  scenario.cluster = load_cluster(data, words.choice);
  const Document stack = open_entry(data, stack_shelf, words.stack);
  scenario.stack = read_stack(stack.root());
  stack.finish();
  scenario.constants = scenario.cluster.constants;
  for (NamedConstant constant : stack.constants()) {
    constant.name = "stack." + constant.name;
    scenario.constants.push_back(std::move(constant));
  }
  check(scenario, path);
  if (scenario.job.sequence > scenario.model.longest_sequence &&
      scenario.model.longest_sequence > 0)
    throw UserError({{path, 0, "job.sequence",
                      fmt::format("{} is longer than {} allows ({})", scenario.job.sequence,
                                  scenario.model.name, scenario.model.longest_sequence)}});
  return scenario;
}

}  // namespace stepsim
