#include "analysis/studies/predict/rank_memory.hpp"

#include <algorithm>

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

}  // namespace stepsim
