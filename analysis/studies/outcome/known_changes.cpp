#include "analysis/studies/outcome/known_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/config.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view sharding_key = "strategy.zero";
constexpr std::array micro_batches{"1", "2", "4", "8", "16", "32", "64"};

// These do the same work otherwise: surest_ways gain most often, first_ways change what usually
// costs most.
constexpr std::array surest_ways = std::to_array<std::pair<const char*, const char*>>({
    {"strategy.compile", "true"},
});
constexpr std::array first_ways = std::to_array<std::pair<const char*, const char*>>({
    {"strategy.zero_optimization.sub_group_size", "1e9"},
    {"strategy.zero_optimization.leaf_modules", "true"},
    {"strategy.moe.kernel", "grouped"},
    {"strategy.offload.parameters", "none"},
    {"strategy.offload.optimizer", "none"},
    {"strategy.checkpointing", "none"},
    {"strategy.zero_optimization.overlap_comm", "true"},
});
constexpr std::array further_ways = std::to_array<std::pair<const char*, const char*>>({
    {"strategy.zero", "1"},
    {"strategy.zero", "2"},
    {"strategy.zero", "3"},
    {"strategy.zero", "fsdp"},
    {"strategy.cross_entropy", "fused"},
    {"strategy.attention", "flash"},
    {"strategy.zero_optimization.stage3_prefetch_bucket_size", "5e8"},
    {"strategy.optimizer_kernels", "fused"},
    {"strategy.lora.kernels", "fused"},
    {"strategy.lora.adapters", "bf16"},
    {"strategy.optimizer", "adamw_8bit"},
    {"strategy.optimizer", "adamw"},
});

// These change the stages of a pipeline.
constexpr std::array stage_ways = std::to_array<std::pair<const char*, const char*>>({
    {"strategy.pipeline_parallel.schedule", "zb_h1"},
});
// These change a GRPO job.
constexpr std::array grpo_ways = std::to_array<std::pair<const char*, const char*>>({
    {"job.num_learners_per_node", "[4]"},
    {"job.num_learners_per_node", "[4, 4]"},
    {"job.num_learners_per_node", "[4, 4, 4, 4]"},
    {"job.num_learners_per_node", "[4, 4, 4, 4, 4, 4, 4, 4]"},
    {"job.num_learners_per_node", "[8, 8]"},
    {"job.vllm_tensor_parallel_size", "1"},
    {"job.vllm_tensor_parallel_size", "2"},
    {"job.vllm_tensor_parallel_size", "4"},
    {"job.gather_whole_model", "false"},
    {"job.gather_whole_model", "true"},
    {"job.sync_protocol", "v2"},
    {"job.sync_protocol", "v3"},
    {"job.inflight_updates", "true"},
    {"job.pack_length", "16384"},
    {"job.pack_length", "32768"},
});
constexpr std::array other_grpo_jobs = std::to_array<std::pair<const char*, const char*>>({
    {"job.num_unique_prompts_rollout", "64"},
    {"job.num_unique_prompts_rollout", "128"},
});

// Returns the networks between nodes of this kind: those of the clusters that have them.
std::vector<std::string> networks_between(const Catalogue& data, const std::string& node) {
  std::vector<std::string> networks;
  for (const std::string& name : names_on(data, cluster_shelf)) {
    const Document cluster = open_entry(data, cluster_shelf, name);
    if (cluster.root().text("node") == node) networks.push_back(cluster.root().text("network"));
  }
  return networks;
}

// The number of micro-batches that leaves the rows of a step as they are; nothing where it is none,
// or where it follows from the global batch.
std::vector<Setting> with_micro_batch(const Job& job, const char* micro_batch) {
  std::vector<Setting> settings{{"job.micro_batch", micro_batch}};
  if (job.global_batch) return settings;
  const std::int64_t rows = job.micro_batch * job.accumulation, each = std::stoll(micro_batch);
  if (each == job.micro_batch || rows % each != 0) return {};
  settings.emplace_back("job.gradient_accumulation", std::to_string(rows / each));
  return settings;
}

// The stack that is like this one, of the same program (trl, trl-liger) on GPUs of the same vendor,
// and has kernels of its own for norms, rotations and activations; empty: there is none.
std::string with_fused_kernels(const Catalogue& data, const std::string& stack) {
  if (stack.empty()) return "";
  const auto program = [](const std::string& name) { return name.substr(0, name.find('-')); };
  const std::string vendor = open_entry(data, stack_shelf, stack).root().text_or("vendor", "");
  for (const std::string& name : names_on(data, stack_shelf)) {
    if (program(name) != program(stack)) continue;
    const Document entry = open_entry(data, stack_shelf, name);
    const Table root = entry.root();
    if (root.text_or("like", "") != stack || root.text_or("vendor", "") != vendor) continue;
    if (!root.is_mapping("fused")) continue;
    if (root.table("fused").text_or("activation", "") == "true") return name;
  }
  return "";
}

std::string said_stack(const Scenario& scenario) {
  const auto place = std::ranges::find(scenario.said, "stack", &SaidKey::path);
  return place == scenario.said.end() ? "" : place->text;
}

// Between nodes a second copy on each keeps gathers inside. With the optimizer on the host its
// threads count: launchers start a rank with one.
std::vector<Setting> ways_across_nodes(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const std::uint32_t each = scenario.cluster.gpus_per_node();
  std::vector<Setting> ways;
  if (scenario.cluster.nodes > 1 && each > 1 && !scenario.grpo) {
    if (s.sharding == Sharding::zero3 && s.zero.hpz == 1)
      ways.emplace_back("strategy.zero_optimization.zero_hpz_partition_size", std::to_string(each));
    if (s.sharding == Sharding::fsdp) ways.emplace_back(sharding_key, "hsdp");
  }
  const int share = scenario.cluster.node.host.cores / static_cast<int>(std::max(each, 1u));
  if (s.optimizer_place == Offload::cpu && s.offload.threads > 0 && s.offload.threads < share)
    ways.emplace_back("strategy.offload.threads", std::to_string(share));
  return ways;
}

// Returns the change with the rows of a step as they are, where that comes out even.
KnownChange micro_batch_change(const Job& job, const char* micro_batch) {
  if (auto settings = with_micro_batch(job, micro_batch); !settings.empty()) return {settings};
  return {{{"job.micro_batch", micro_batch}},
          std::stod(micro_batch) / static_cast<double>(job.micro_batch)};
}

// Returns whether a change of the key is one of this run: the stack can share so, and there is more
// than one GPU to share among; there are adapters, which a key of theirs would otherwise make.
bool applies(const Scenario& scenario, std::string_view key, const std::string& value) {
  if (key == sharding_key)
    return scenario.cluster.ranks() > 1 && has_sharding(scenario.stack, value);
  return !key.starts_with("strategy.lora.") || scenario.strategy.lora.rank > 0;
}

std::string rows_text(double rows) {
  if (rows == 0.5) return "half the rows";
  if (rows == 2) return "twice the rows";
  return fmt::format("{:.3g} times the rows", rows);
}

}  // namespace

std::vector<KnownChange> known_changes(const Catalogue& data, const Scenario& scenario) {
  std::vector<KnownChange> all;
  const auto add = [&](const auto& changes) {
    for (const auto& [key, value] : changes)
      if (applies(scenario, key, value)) all.push_back({{{key, value}}});
  };
  for (const char* each : micro_batches) all.push_back(micro_batch_change(scenario.job, each));
  add(surest_ways);
  add(first_ways);
  add(further_ways);
  add(grpo_ways);
  add(other_grpo_jobs);
  if (scenario.cluster.nodes < 2) return all;
  for (std::string& network : networks_between(data, scenario.cluster.node.name))
    all.push_back({{{"cluster.network", std::move(network)}}});
  return all;
}

std::vector<std::vector<Setting>> same_job_changes(const Catalogue& data,
                                                   const Scenario& scenario) {
  std::vector<std::vector<Setting>> all;
  const std::vector<ResolvedKey> keys = resolved_keys(scenario);
  const auto add = [&](const auto& changes) {
    for (const auto& [key, value] : changes)
      if (const Setting setting{key, value};
          !says_so(keys, setting) && applies(scenario, key, value))
        all.push_back({setting});
  };
  add(surest_ways);
  if (scenario.grpo) add(grpo_ways);
  if (scenario.strategy.pipeline_parallel.size > 1) add(stage_ways);
  add(first_ways);
  const Strategy& s = scenario.strategy;
  if (s.optimizer_place != Offload::none && s.parameter_place != Offload::none)
    all.push_back(
        {{"strategy.offload.optimizer", "none"}, {"strategy.offload.parameters", "none"}});
  if (!scenario.grpo)
    for (const char* each : micro_batches)
      if (auto settings = with_micro_batch(scenario.job, each); !settings.empty())
        all.push_back(std::move(settings));
  add(further_ways);
  add(ways_across_nodes(scenario));
  if (std::string fused = with_fused_kernels(data, said_stack(scenario)); !fused.empty())
    all.push_back({{"stack", std::move(fused)}});
  return all;
}

std::string change_text(const std::vector<Setting>& settings, double rows) {
  std::string text;
  for (const auto& [key, value] : settings)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return rows == 1 ? text : fmt::format("{} ({})", text, rows_text(rows));
}

bool says_so(const std::vector<ResolvedKey>& keys, const Setting& setting) {
  return std::ranges::any_of(keys, [&](const ResolvedKey& key) {
    return key.path() == setting.first && key.value == setting.second;
  });
}

bool has_sharding(const Stack& stack, const std::string& zero) {
  for (const auto& [key, values] : stack.choices.keys)
    if (key == sharding_key && !values.empty())
      return holds(values, zero) || (zero == "fsdp" && holds(values, "3"));
  return true;
}

}  // namespace stepsim
