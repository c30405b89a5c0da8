#include "analysis/studies/sweep/sweep_what_ifs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/predict/worker.hpp"
#include "scenarios/import/sources.hpp"
#include "scenarios/scenario_catalog.hpp"
#include "sim/base/config.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// A change that means nothing for a scenario, or changes nothing, or is worse, drops out by itself.
constexpr std::array changes{
    std::pair{"job.micro_batch", "1"},
    std::pair{"job.micro_batch", "2"},
    std::pair{"job.micro_batch", "4"},
    std::pair{"job.micro_batch", "8"},
    std::pair{"job.micro_batch", "16"},
    std::pair{"job.micro_batch", "32"},
    std::pair{"job.micro_batch", "64"},
    std::pair{"strategy.zero", "1"},
    std::pair{"strategy.zero", "2"},
    std::pair{"strategy.zero", "3"},
    std::pair{"strategy.zero", "fsdp"},
    std::pair{"strategy.checkpointing", "none"},
    std::pair{"strategy.optimizer", "adamw_8bit"},
    std::pair{"strategy.optimizer", "adamw"},
    std::pair{"strategy.offload.optimizer", "none"},
    std::pair{"strategy.offload.parameters", "none"},
    std::pair{"strategy.moe.kernel", "grouped"},
    std::pair{"strategy.zero_optimization.leaf_modules", "true"},
    std::pair{"strategy.zero_optimization.overlap_comm", "true"},
    std::pair{"strategy.zero_optimization.sub_group_size", "1e9"},
    std::pair{"strategy.zero_optimization.stage3_prefetch_bucket_size", "5e8"},
    std::pair{"job.num_learners_per_node", "[4]"},
    std::pair{"job.num_learners_per_node", "[4, 4]"},
    std::pair{"job.num_learners_per_node", "[4, 4, 4, 4]"},
    std::pair{"job.num_learners_per_node", "[4, 4, 4, 4, 4, 4, 4, 4]"},
    std::pair{"job.num_learners_per_node", "[8, 8]"},
    std::pair{"job.vllm_tensor_parallel_size", "1"},
    std::pair{"job.vllm_tensor_parallel_size", "2"},
    std::pair{"job.vllm_tensor_parallel_size", "4"},
    std::pair{"job.gather_whole_model", "false"},
    std::pair{"job.gather_whole_model", "true"},
    std::pair{"job.sync_protocol", "v2"},
    std::pair{"job.sync_protocol", "v3"},
    std::pair{"job.inflight_updates", "true"},
    std::pair{"job.pack_length", "16384"},
    std::pair{"job.pack_length", "32768"},
    std::pair{"job.num_unique_prompts_rollout", "64"},
    std::pair{"job.num_unique_prompts_rollout", "128"},
};
constexpr std::size_t most_shown = 3;
constexpr double worth_showing = 0.005;  // of the throughput

// Between nodes of this kind: those of the clusters that have them.
std::vector<std::string> networks_between(const std::string& data, const std::string& node) {
  std::vector<std::string> networks;
  for (const std::string& name : names_on(data, cluster_shelf)) {
    const Document cluster = open_entry(data, cluster_shelf, name);
    if (cluster.root().text("node") == node) networks.push_back(cluster.root().text("network"));
  }
  return networks;
}

std::vector<Setting> candidates_for(const std::string& data, const Scenario& scenario) {
  std::vector<Setting> all(changes.begin(), changes.end());
  if (scenario.cluster.nodes < 2) return all;
  for (std::string& network : networks_between(data, scenario.cluster.node.name))
    all.emplace_back("cluster.network", std::move(network));
  return all;
}

// Nothing is known of a change that the scenario has no place for.
Outcome answer_to(const std::string& data, const SweepPlan& plan, std::vector<Setting> settings,
                  const Setting& change) {
  settings.push_back(change);
  try {
    return evaluate(data, plan.scenario, settings);
  } catch (const UserError& error) {
    return impossible(error.what());
  }
}

}  // namespace

std::vector<WhatIf> what_ifs(const std::string& data, const SweepPlan& plan, const SweepRow& row) {
  const double now = row.outcome.of("tokens_per_second").value_or(0);
  if (now <= 0) return {};
  const std::vector<Setting> settings = settings_of(plan, row.values);
  const std::vector<Setting> candidates =
      candidates_for(data, load_scenario(data, plan.scenario, settings));
  std::vector<WhatIf> found;
  const auto task = [&](std::size_t i) { return answer_to(data, plan, settings, candidates[i]); };
  const auto done = [&](std::size_t i, Outcome outcome) {
    const double gain = outcome.of("tokens_per_second").value_or(0) / now - 1;
    const auto& [key, value] = candidates[i];
    if (outcome.feasible && gain > worth_showing)
      found.push_back({fmt::format("{}: {}", key, value), gain, std::move(outcome)});
  };
  in_workers(candidates.size(), usual_workers(), task, done);
  std::ranges::sort(found, [](const WhatIf& a, const WhatIf& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.change < b.change;
  });
  // Of several values of one key the best is enough.
  std::vector<WhatIf> best;
  for (WhatIf& each : found) {
    const std::string key = each.change.substr(0, each.change.find(':'));
    const bool said = std::ranges::any_of(
        best, [&](const WhatIf& other) { return other.change.starts_with(key + ":"); });
    if (!said && best.size() < most_shown) best.push_back(std::move(each));
  }
  return best;
}

std::optional<std::vector<WhatIf>> what_ifs_of(const std::string& data, const SweepTable& table,
                                               const SweepReport& report) {
  if (!report.fastest) return std::vector<WhatIf>{};
  SweepPlan plan;
  plan.scenario = table.source;
  plan.fixed = table.fixed;
  for (const std::string& key : table.keys) plan.axes.push_back({{key}, {}});
  try {
    if (content_of(find_scenario(data, table.source)).canonical() == table.scenario)
      return what_ifs(data, plan, table.rows[*report.fastest]);
  } catch (const UserError&) {
  }
  return std::nullopt;
}

}  // namespace stepsim
