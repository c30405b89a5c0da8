#include "cli/scenarios.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "scenarios/run_length.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/scenario_catalog.hpp"
#include "sim/base/json.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

template <class Enum, std::size_t N>
std::string_view word(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string yes_or_no(bool flag) {
  return flag ? "true" : "false";
}

std::string experts_text(const Strategy& s) {
  std::string text(word(moe_kernel_names, s.moe_kernel));
  text += fmt::format(", expert parallel {}", s.expert_parallel);
  if (sends_tokens(s) && !has_slots(s.moe_kernel))
    text += fmt::format(", tokens sent by {}", word(dispatcher_names, s.dispatcher));
  if (sends_tokens(s) && s.tensor_parallel.size > 1)
    text += fmt::format(", each divided among {}", expert_tensor_of(s));
  if (has_slots(s.moe_kernel)) text += fmt::format(", capacity factor {:g}", s.capacity_factor);
  if (s.moe_skew > 0) text += fmt::format(", skew {:g}", s.moe_skew);
  return text;
}

Rows fsdp_rows(const FsdpKeys& keys) {
  return {{"fsdp version", std::to_string(keys.version)},
          {"reduce_dtype", std::string(word(reduce_dtype_names, keys.reduce))},
          {"reshard_after_forward", yes_or_no(keys.reshard_after_forward)},
          {"sync_each_batch", yes_or_no(keys.sync_each_batch)},
          {"limit_all_gathers", yes_or_no(keys.limit_all_gathers)},
          {"forward_prefetch", yes_or_no(keys.forward_prefetch)},
          {"backward_prefetch", std::string(word(fsdp_prefetch_names, keys.backward_prefetch))},
          {"root_group", yes_or_no(keys.root_group)}};
}

Rows strategy_rows(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const ZeroKeys& keys = s.zero;
  Rows rows{
      {"sharding",
       fmt::format("{}{}", is_fsdp(s.sharding) ? "" : "zero ", word(sharding_names, s.sharding))},
      {"checkpointing",
       fmt::format(
           "{}{}", word(checkpointing_names, s.checkpointing),
           s.checkpoint_every > 1 ? fmt::format(", one layer of {:.3g}", s.checkpoint_every) : "")},
      {"compile", s.compiled ? "true" : "false"},
      {"optimizer", fmt::format("{}{}", word(optimizer_names, s.optimizer),
                                s.master_weights ? " with fp32 master weights" : "")},
      {"offload",
       fmt::format("optimizer {}, parameters {}, activations {}",
                   word(offload_names, s.optimizer_place), word(offload_names, s.parameter_place),
                   word(offload_names, s.activation_place))}};
  if (s.optimizer_place == Offload::cpu && s.offload.ratio < 1)
    rows.emplace_back("offload ratio", fmt::format("{:.4g}", s.offload.ratio));
  if (scenario.model.experts) rows.emplace_back("experts", experts_text(s));
  if (is_fsdp(s.sharding)) {
    for (auto& row : fsdp_rows(s.fsdp)) rows.push_back(std::move(row));
    return rows;
  }
  rows.emplace_back("overlap_comm", yes_or_no(keys.overlap_comm));
  const auto elements = [&](std::string_view name, double value) {
    rows.emplace_back(name, fmt::format("{:.10g} elements", value));
  };
  elements("reduce_bucket_size", keys.reduce_bucket);
  if (s.sharding != Sharding::zero3) return rows;
  elements("stage3_prefetch_bucket_size", keys.prefetch_bucket);
  elements("stage3_param_persistence_threshold", keys.persistence_threshold);
  elements("stage3_max_live_parameters", keys.max_live);
  elements("stage3_max_reuse_distance", keys.max_reuse);
  elements("sub_group_size", keys.sub_group);
  rows.emplace_back("zero_hpz_partition_size", std::to_string(keys.hpz));
  rows.emplace_back("zero_quantized_weights", yes_or_no(keys.quantized_weights));
  rows.emplace_back("zero_quantized_gradients", yes_or_no(keys.quantized_gradients));
  rows.emplace_back("leaf_modules", yes_or_no(keys.leaf_modules));
  return rows;
}

Rows rows_of(const Scenario& scenario) {
  const Job& job = scenario.job;
  const std::uint32_t ranks = scenario.cluster.ranks();
  const std::string groups = to_text(mesh_of(scenario.strategy, scenario.cluster));
  Rows rows{{"model", fmt::format("{}, {:.4g} parameters", scenario.model.name,
                                  static_cast<double>(count_parameters(scenario.model).total()))},
            {"cluster", fmt::format("{} x {}, {} ranks", scenario.cluster.nodes,
                                    scenario.cluster.node.name, ranks)},
            {"groups", groups.empty() ? "data only" : groups},
            {"stack", scenario.stack.title},
            {"family", scenario.family},
            {"micro-batch", fmt::format("{} {} of {}: {:.10g} slots, {:.4g} % filled", job.rows(),
                                        job.method == Method::dpo ? "rows" : "sequences",
                                        job.sequence, job.slots(), 100 * job.fill)}};
  if (const auto length = run_length(job, mesh_of(scenario.strategy, scenario.cluster).data())) {
    rows.emplace_back("effective batch", fmt::format("{:.10g}", length->effective_batch));
    rows.emplace_back("optimizer steps", fmt::format("{:.10g}", length->optimizer_steps));
    rows.emplace_back("iterations", fmt::format("{:.10g} on each rank", length->iterations));
    rows.emplace_back("epochs", fmt::format("{:.10g}", length->epochs));
    rows.emplace_back("tokens", fmt::format("{:.4g}", length->tokens));
  }
  for (auto& row : strategy_rows(scenario)) rows.push_back(std::move(row));
  return rows;
}

std::string text_in(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

bool is_scenario(const std::string& data, const std::string& name) {
  for (const std::string& each : scenario_names(data))
    if (name == each || name == std::filesystem::path(each).filename()) return true;
  return name.ends_with(".yaml");
}

Rows list_scenarios(const std::string& data) {
  Rows rows;
  for (const std::string& name : scenario_names(data))
    rows.emplace_back(name, read_document(scenario_file(data, name)).root().text_or("name", ""));
  return rows;
}

std::string scenario_text(const std::string& data, const std::string& name) {
  const std::string file = find_scenario(data, name);
  const Scenario scenario = load_scenario(data, file);
  std::string text =
      fmt::format("{} (scenario): {}\n\n{}\nresolved\n", name, scenario.name, text_in(file));
  for (const auto& [key, value] : rows_of(scenario))
    text += fmt::format("  {:<34}  {}\n", key, value);
  return text;
}

std::string scenario_json(const std::string& data, const std::string& name) {
  const std::string file = find_scenario(data, name);
  const Scenario scenario = load_scenario(data, file);
  JsonWriter json;
  json.begin_object()
      .member("name", name)
      .member("kind", "scenario")
      .member("title", scenario.name)
      .member("text", text_in(file))
      .key("resolved")
      .begin_object();
  for (const auto& [key, value] : rows_of(scenario)) json.member(key, value);
  json.end_object().end_object();
  return json.take();
}

}  // namespace stepsim
