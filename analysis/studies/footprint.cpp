#include "analysis/studies/footprint.hpp"

#include <fmt/format.h>

#include "workloads/step.hpp"

namespace stepsim {
namespace {

// Above this share of the capacity an allocator may fail on fragments although the sum fits.
constexpr double tight_share = 0.95;

bool fits(const Scenario& scenario) {
  return footprint(scenario).fit() != Fit::oom;
}

void offer(std::vector<Remedy>& list, const Scenario& changed, std::string change) {
  Footprint needs = footprint(changed);
  if (needs.fit() != Fit::oom) list.push_back({std::move(change), std::move(needs)});
}

// Memory grows with the micro-batch, so halving finds the largest.
void offer_smaller_batch(std::vector<Remedy>& list, const Scenario& scenario) {
  Scenario changed = scenario;
  const auto with = [&](std::int64_t micro_batch) -> const Scenario& {
    changed.job.micro_batch = micro_batch;
    return changed;
  };
  if (scenario.job.micro_batch == 1 || !fits(with(1))) return;
  std::int64_t good = 1, bad = scenario.job.micro_batch;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(with(middle)) ? good : bad) = middle;
  }
  offer(list, with(good), fmt::format("job.micro_batch: {}", good));
}

}  // namespace

std::string_view to_text(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::tight:
      return "tight";
    case Fit::oom:
      return "oom";
  }
  return "";
}

Fit Footprint::fit() const {
  if (needed() > capacity) return Fit::oom;
  return needed() > tight_share * capacity ? Fit::tight : Fit::fits;
}

Footprint footprint_of(const Scenario& scenario, double resident, MemoryPeak peak) {
  const double used = resident + peak.bytes;
  return {.resident = resident,
          .peak = std::move(peak),
          .slack = used * scenario.stack.allocator_slack.value.value,
          .capacity = scenario.cluster.gpu.memory.usable.value.value};
}

Footprint footprint(const Scenario& scenario) {
  const StepInput input{scenario.cluster, scenario.model, scenario.stack, scenario.strategy,
                        scenario.job};
  const StepProgram program = build_step(input, Folding::automatic);
  return footprint_of(scenario, program.resident, peak_memory_in_order(program.graph, 0));
}

std::vector<Remedy> remedies(const Scenario& scenario) {
  std::vector<Remedy> list;
  offer_smaller_batch(list, scenario);
  Scenario changed = scenario;
  if (scenario.strategy.checkpointing == Checkpointing::none) {
    changed.strategy.checkpointing = Checkpointing::full;
    offer(list, changed, "strategy.checkpointing: full");
    changed = scenario;
  }
  const bool experts_exchanged = scenario.strategy.expert_parallel > 1;
  for (const Sharding stage : {Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    if (scenario.strategy.sharding >= stage) continue;
    if (stage == Sharding::zero3 && experts_exchanged) continue;  // DeepSpeed rejects the pair
    changed.strategy.sharding = stage;
    offer(list, changed, fmt::format("strategy.zero: {}", to_text(stage)));
    changed = scenario;
  }
  if (scenario.strategy.optimizer == OptimizerKind::adamw) {
    changed.strategy.optimizer = OptimizerKind::adamw_8bit;
    offer(list, changed, "strategy.optimizer: adamw_8bit");
    changed = scenario;
  }
  const bool can_offload =
      !is_fsdp(scenario.strategy.sharding) && scenario.strategy.sharding != Sharding::zero0;
  if (scenario.strategy.optimizer_place == Offload::none && can_offload) {
    changed.strategy.optimizer_place = Offload::cpu;
    offer(list, changed, "strategy.offload.optimizer: cpu");
    if (scenario.strategy.sharding == Sharding::zero3) {
      changed.strategy.parameter_place = Offload::cpu;
      offer(list, changed, "strategy.offload: {optimizer: cpu, parameters: cpu}");
    }
  }
  return list;
}

}  // namespace stepsim
