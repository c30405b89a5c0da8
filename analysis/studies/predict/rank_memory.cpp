#include "analysis/studies/predict/rank_memory.hpp"

#include <algorithm>
#include <limits>

#include "analysis/studies/predict/replayed_step.hpp"
#include "analysis/studies/predict/stages.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

const StepStage& stage_of(const std::vector<StepStage>& stages, Rank rank) {
  const auto after = std::ranges::upper_bound(stages, rank, {}, &StepStage::lane);
  return *std::prev(after);
}

}  // namespace

RankMemory rank_memory(const Scenario& scenario, const Run& run, std::optional<Rank> rank) {
  const bool folded = std::ranges::any_of(run.lane_sizes, [](auto size) { return size > 1; });
  RankMemory memory;
  memory.rank = rank.value_or(0);
  Scenario own = scenario;
  if (scenario.strategy.pipeline_parallel.size > 1) {  // then ranks are not all alike
    const StepProgram program =
        build_step(step_input(scenario), folded ? Folding::automatic : Folding::off);
    if (!rank) {
      const auto timeline = [&](Rank lane) { return timeline_of(run.graph, run.trace, lane); };
      const Footprint fullest = fullest_footprint(scenario, program, timeline);
      memory.rank = program.stages[fullest.stage.number].lane;
    }
    own.model = stage_of(program.stages, memory.rank).model;
  }
  const StepInput input = step_input(own);
  memory.timeline = setup_timeline(rank_part(input));
  append(memory.timeline, timeline_of(run.graph, run.trace, memory.rank));
  memory.streams = allocating_streams(own.strategy);
  memory.room = (own.cluster.gpu.memory.usable.value - own.cluster.gpu.memory.library.value).value;
  memory.expandable_segments = own.strategy.expandable_segments;
  return memory;
}

StepMemory memory_of_step(const Scenario& scenario, const Footprint& footprint) {
  const StepProgram program = step_for_memory(step_input(scenario));
  const bool alike = program.stages.empty();
  const StepStage* stage = alike ? nullptr : &program.stages[footprint.stage.number];
  StepMemory memory{.reading = {}, .resident = alike ? program.resident : stage->resident};
  Timeline before;
  for (const auto& [pool, held, bytes] : memory.resident.holdings)
    before.push_back({0, pool, "between steps", "", to_text(held), bytes});
  memory.reading =
      read_timelines({before, timeline_in_order(program.graph, alike ? 0 : stage->lane)},
                     device_pool, std::numeric_limits<double>::infinity());
  return memory;
}

}  // namespace stepsim
