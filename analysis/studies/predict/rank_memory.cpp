#include "analysis/studies/predict/rank_memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "analysis/placement.hpp"
#include "analysis/requests.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "sim/base/lists.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

const StepStage& stage_of(const std::vector<StepStage>& stages, Rank rank) {
  const auto after = std::ranges::upper_bound(stages, rank, {}, &StepStage::lane);
  return *std::prev(after);
}

bool has_a_row_for_each_token(std::string_view tensor_class) {
  constexpr std::array all{Held::activations, Held::checkpoints, Held::activation_gradients,
                           Held::temporary, Held::stage_buffers};
  return std::ranges::any_of(all, [&](Held held) { return to_text(held) == tensor_class; });
}

// Returns the step's timeline with that share of its slots.
Timeline with_share_of_slots(const Timeline& step, double share) {
  Timeline part = step;
  for (MemoryChange& change : part)
    if (has_a_row_for_each_token(change.tensor_class)) change.bytes *= share;
  return part;
}

// The first update makes the optimizer's states, where gradients still are; all else is set up
// before the first step.
Timeline up_to_first_step(const Timeline& set_up, const Timeline& step) {
  const auto states = std::ranges::find(set_up, "first update", &MemoryChange::moment);
  const auto update = std::ranges::find(step, "optimizer", &MemoryChange::moment);
  Timeline all(set_up.begin(), states);
  all.insert(all.end(), step.begin(), update);
  std::copy_if(states, set_up.end(), std::back_inserter(all), [](const MemoryChange& change) {
    return change.tensor_class != to_text(Held::own_gradients);  // the step has them itself
  });
  all.insert(all.end(), update, step.end());
  return all;
}

// Two steps, or as many as rows have lengths that count: the longer ones do not fit into what the
// shorter ones before them have left, which stays with the allocator.
Timeline in_order_of_steps(const Timeline& set_up, const Timeline& step, const Job& job) {
  constexpr std::size_t lengths = 16;
  std::vector<double> shares = shares_of_slots(job, lengths);
  const double first = shares.empty() ? 1 : shares.front();
  Timeline all = up_to_first_step(set_up, with_share_of_slots(step, first));
  if (!shares.empty()) shares.erase(shares.begin());
  for (const double share : shares) append(all, with_share_of_slots(step, share));
  append(all, step);
  return all;
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

double reserved_in_order(const Scenario& scenario, const Footprint& footprint) {
  const StepProgram program = step_for_memory(step_input(scenario), Written::figures);
  const bool alike = program.stages.empty();
  const StepStage* stage = alike ? nullptr : &program.stages[footprint.stage.number];
  Scenario own = scenario;
  if (stage != nullptr) own.model = stage->model;
  const Timeline set_up = setup_timeline(rank_part(step_input(own)));
  const Timeline step = timeline_in_order(program.graph, alike ? 0 : stage->lane);
  const Timeline all = in_order_of_steps(set_up, step, own.job);
  const AllocatingStreams streams = allocating_streams(own.strategy);
  const auto& memory = own.cluster.gpu.memory;
  MemoryPlacement placement(
      static_cast<std::uint64_t>((memory.usable.value - memory.library.value).value),
      own.strategy.expandable_segments);
  const std::vector<Request> requests = requests_of(program.graph, all);
  std::vector<std::vector<std::size_t>> given(all.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i].given != never) given[requests[i].given].push_back(i);
  std::vector<MemoryPlacement::Address> addresses(requests.size());
  std::vector<MemoryPlacement::Change> changes;
  std::uint64_t most = 0;
  std::size_t next = 0;
  for (std::size_t change = 0; change < all.size(); ++change) {
    for (; next < requests.size() && requests[next].taken == change; ++next) {
      const double bytes = std::max(1.0, std::round(requests[next].bytes));
      addresses[next] = placement.take(static_cast<std::uint64_t>(bytes),
                                       stream_of(streams, all[change].tensor_class), next, changes);
      most = std::max(most, placement.reserved());
    }
    for (const std::size_t request : given[change]) placement.give(addresses[request]);
  }
  return static_cast<double>(most) * scenario.stack.allocator_layout.number();
}

}  // namespace stepsim
