#include <fmt/format.h>

#include <cmath>

#include "scenarios/rules/rules.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t states = 4;  // fp32 copy, two moments, gradient: a buffer each

void check_ratio(const Table& offload, const Strategy& s) {
  if (s.offload.ratio == 1) return;
  const auto reject = [&](std::string_view message) { offload.problem("ratio", message); };
  if (s.optimizer_place != Offload::cpu) reject("needs optimizer: cpu");
  if (!s.optimizer.places.both)
    reject("DeepSpeed updates both parts with AdamW: needs strategy.optimizer: adamw");
}

void check_host_adam(const Table& offload, const Scenario& scenario) {
  const Host& host = scenario.cluster.node.host;
  const OffloadKeys& keys = scenario.strategy.offload;
  const auto check = [&](std::string_view key, bool asked, bool known, std::string_view constant) {
    if (asked && scenario.strategy.optimizer_place != Offload::cpu)
      offload.problem(key, "needs optimizer: cpu");
    else if (asked && !known)
      offload.problem(
          key, fmt::format("{} has no host.{} in its file", scenario.cluster.node.name, constant));
  };
  check("cpu_adam", keys.adam != HostAdam::one_pass,
        keys.adam == HostAdam::operators || host.cpu_adam_grace.has_value(), "cpu_adam_grace");
  // The number of threads says nothing without an update on the host, as when a sweep takes the
  // optimizer off it.
  if (scenario.strategy.optimizer_place == Offload::cpu)
    check("threads", keys.threads > 0, host.core_stream.has_value(), "core_stream");
}

void check_drives(const Table& offload, const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const StepInput input = step_input(scenario);
  const bool optimizer = s.optimizer_place == Offload::nvme;
  const bool parameters = s.parameter_place == Offload::nvme;
  if (scenario.cluster.node.count(PartKind::nvme) == 0) {
    offload.problem(optimizer ? "optimizer" : "parameters",
                    fmt::format("{} has no drives in its file", scenario.cluster.node.name));
    return;
  }
  const std::int64_t needed =
      states * (1 + (s.offload.pipeline_read ? 1 : 0) + (s.offload.pipeline_write ? 1 : 0));
  if (optimizer && s.offload.optimizer_buffers < needed)
    offload.problem("optimizer_buffers",
                    fmt::format("expected at least {}: fp32 copy, two moments and gradient of each "
                                "sub-group on its way, found {}",
                                needed, s.offload.optimizer_buffers));
  const RankPart rank = rank_part(input);
  const double largest = rank.tensors.largest / static_cast<double>(rank.mesh.shard);
  if (parameters && s.offload.buffer_size < largest)
    offload.problem("buffer_size",
                    fmt::format("expected at least {:.0f}, a rank's part of the largest tensor, "
                                "found {:.10g}",
                                std::ceil(largest), s.offload.buffer_size));
}

// FSDP has all of it on the host or nothing.
void check_fsdp_offload(const Table& offload, const Scenario& scenario, bool found) {
  const Strategy& s = scenario.strategy;
  for (const auto& [key, place] :
       {std::pair("optimizer", s.optimizer_place), std::pair("parameters", s.parameter_place)})
    if (place == Offload::nvme) offload.problem(key, "nvme needs zero: 3");
  if ((s.optimizer_place == Offload::cpu) != (s.parameter_place == Offload::cpu))
    offload.problem(s.optimizer_place == Offload::cpu ? "parameters" : "optimizer",
                    "fsdp keeps parameters, gradients and optimizer on the host together: needs "
                    "optimizer: cpu and parameters: cpu");
  if (s.offload.ratio != 1) offload.problem("ratio", "is a key of zero: 1 to 3");
  if (found) check_host_adam(offload, scenario);
}

}  // namespace

void check_offload(const Table& offload, const Scenario& scenario, bool found) {
  const Strategy& s = scenario.strategy;
  if (is_fsdp(s.sharding)) return check_fsdp_offload(offload, scenario, found);
  if (s.parameter_place != Offload::none && s.sharding != Sharding::zero3)
    offload.problem("parameters", "needs zero: 3, or fsdp and its optimizer on the host, too");
  if (s.optimizer_place != Offload::none && s.sharding == Sharding::zero0)
    offload.problem("optimizer", "is modelled for zero: 1, 2 and 3, and fsdp");
  else if (s.optimizer_place == Offload::nvme && s.sharding != Sharding::zero3)
    offload.problem("optimizer",
                    "nvme needs zero: 3; below it DeepSpeed takes host memory instead: cpu");
  if (s.optimizer_place == Offload::nvme && !s.optimizer.places.drives)
    offload.problem("optimizer", "nvme needs strategy.optimizer: adamw");
  check_ratio(offload, s);
  if (found) check_host_adam(offload, scenario);
  if (found && (s.optimizer_place == Offload::nvme || s.parameter_place == Offload::nvme))
    check_drives(offload, scenario);
}

}  // namespace stepsim
