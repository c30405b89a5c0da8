#include "analysis/studies/predict/footprint.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "analysis/studies/predict/replayed_step.hpp"
#include "workloads/sharding/saving.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/setup.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

constexpr std::array host_pools{Pool::pinned, Pool::pageable};

// Runs need more or less than is predicted, by a factor whose logarithm is taken as logistic around
// 0. Its scale is the likeliest one for 894 outcomes and 193 figures of memory in tables of runs,
// by kind; both ask for about the same. Frozen weights in few bits (92 rows) and offload (11) are
// known least.
double scatter_of(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategy;
  const bool few_bits = strategy.lora.rank > 0 && strategy.lora.quantised.packs();
  if (few_bits || strategy.optimizer_place != Offload::none) return 0.15;
  return scenario.model.experts ? 0.07 : 0.05;
}

// Returns the share of runs for which there is room. Beside their scatter, `end` is how far the
// logarithm of what they need may lie on the side that counts, each place as likely.
double share_with_room(double room, double need, double scatter, double end) {
  if (need <= 0) return 1;
  if (room <= 0) return 0;
  constexpr double of_logistic = std::numbers::pi / std::numbers::sqrt3;
  const double deviation = std::hypot(scatter * of_logistic, end / std::numbers::sqrt3);
  const double distance = std::log(room / need);
  if (deviation <= 0) return distance >= 0 ? 1 : 0;
  return 1 / (1 + std::exp(-distance * of_logistic / deviation));
}

// The most that set-up and steps ask for. What the allocator holds beyond that is a share of what a
// step asks for. Set-up takes whole buffers, each a segment of its own, unless parameters are
// shared out tensor by tensor.
struct MostAsked {
  double setup = 0, steps = 0;  // bytes
  bool by_tensor = false;

  double held(double slack) const {
    return std::max(setup * (by_tensor ? 1 + slack : 1), steps * (1 + slack));
  }
};

MostAsked asked_for(const Strategy& strategy, const Timeline& setup,
                    std::initializer_list<std::span<const MemoryChange>> steps) {
  double kept = 0;
  for (const MemoryChange& change : setup)
    if (change.pool == Pool::device) kept += change.bytes;
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  return {read_timelines({setup}, device_pool, no_limit).peak.bytes,
          kept + read_timelines(steps, device_pool, no_limit).peak.bytes,
          facts_of(strategy).gathers_parameters};
}

bool setup_of_rank_fits(const Scenario& scenario) {
  const StepInput input = step_input(scenario);
  const auto& gpu = scenario.cluster.gpu.memory;
  const Timeline setup = setup_timeline(rank_part(input));
  const MostAsked asked = asked_for(scenario.strategy, setup, {});
  const double host = scenario.cluster.node.host.dram_capacity.value.value;
  return asked.held(slack_of(input).number()) <= (gpu.usable.value - gpu.library.value).value &&
         read_timelines({setup}, host_pools, host, scenario.cluster.gpus_per_node()).peak.bytes <=
             host;
}

}  // namespace

Timeline setup_timeline(const RankPart& rank) {
  Timeline timeline;
  for (const SetupChange& change : setup_of(rank))
    timeline.push_back(
        {0, change.pool, change.moment, change.moment, to_text(change.held), change.bytes});
  return timeline;
}

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
  if (std::isnan(margin.value)) throw std::logic_error("the memory that is needed is no number");
  const double share = chance();
  return share < tight_from ? Fit::oom : share < fits_from ? Fit::tight : Fit::fits;
}

double Footprint::chance_on_device() const {
  const double room = capacity - library, need = room - margin.value;
  const double end = margin.value < 0 ? margin.high - margin.value : margin.value - margin.low;
  return share_with_room(room, need, scatter, need > 0 ? std::log1p(end / need) : 0);
}

double Footprint::chance_on_host() const {
  return share_with_room(host_capacity, host.peak.bytes, scatter, 0);
}

double Footprint::chance() const {
  return drives_fit() ? std::min(chance_on_device(), chance_on_host()) : 0;
}

Footprint footprint_of(const Scenario& scenario, const Resident& resident, const Timeline& step) {
  const StepInput input = step_input(scenario);
  const Gpu& gpu = scenario.cluster.gpu;
  const Constant<Ratio> slack = slack_of(input);
  const auto &usable = gpu.memory.usable, &library = gpu.memory.library;
  const RankPart rank = rank_part(input);
  const Timeline setup = setup_timeline(rank);
  MomentProgram save;     // its words are in the timeline
  StepProgram evaluated;  // likewise
  Timeline evaluation, saved;
  if (const auto pass = evaluation_of(input)) {
    evaluated = build_step(*pass, Folding::automatic, Written::memory);
    evaluation = timeline_in_order(evaluated.graph, 0);
  }
  if (scenario.job.save.every > 0) {
    save = build_save(input, Folding::automatic);
    saved = timeline_in_order(save.graph, 0);
  }
  Footprint f;
  for (const UnmodelledKey& key : scenario.unmodelled)
    if (key.needs_memory) f.uncounted.push_back(key.key);
  const MostAsked asked = asked_for(scenario.strategy, setup, {step, evaluation, saved});
  const auto all = {std::span<const MemoryChange>(setup), std::span<const MemoryChange>(step),
                    std::span<const MemoryChange>(evaluation),
                    std::span<const MemoryChange>(saved)};
  const double whole = (usable.value - library.value).value;
  const double room = whole / (1 + slack.value.value);
  const auto read = [&](double limit) { return read_timelines(all, device_pool, limit); };
  f.device = read(asked.by_tensor ? room : std::max(room, std::min(asked.setup, whole)));
  const double used = f.device.peak.bytes;
  f.slack = std::max(0.0, asked.held(slack.value.value) - used);  // sums are rounded
  f.library = library.value.value;
  const Constant<Ratio>& layout = scenario.stack.allocator_layout;
  f.layout = {layout.number(), layout.low.value, layout.high.value};
  f.mapped = resident.mapped_before_update;
  f.context = gpu.memory.context.value.value;
  f.capacity = usable.value.value;
  f.margin = {whole - asked.held(slack.value.value),
              usable.low.value - library.high.value - asked.held(slack.high.value),
              usable.high.value - library.low.value - asked.held(slack.low.value)};
  if (f.margin.value < 0 && !f.device.failed) f.device.failed = read(room).failed;
  f.scatter = scatter_of(scenario);
  f.states = states_of(rank);
  const double ranks = scenario.cluster.gpus_per_node();
  f.host_capacity = scenario.cluster.node.host.dram_capacity.value.value;
  f.host = read_timelines(all, host_pools, f.host_capacity, ranks);
  f.pinned = ranks * resident.in(Pool::pinned);
  f.pageable = ranks * resident.in(Pool::pageable);
  f.disk = ranks * resident.in(Pool::disk);
  if (const auto& drives = scenario.cluster.node.host.drive_capacity)
    f.disk_capacity = drives->value.value;
  return f;
}

bool setup_fits(const Scenario& scenario) {
  if (scenario.strategy.pipeline_parallel.size == 1) return setup_of_rank_fits(scenario);
  const RankPart whole = rank_part(step_input(scenario));
  Scenario own = scenario;
  return std::ranges::all_of(prepare_step(whole, Folding::automatic).stages,
                             [&](const StepStage& stage) {
                               own.model = stage.model;
                               return setup_of_rank_fits(own);
                             });
}

Footprint footprint(const Scenario& scenario) {
  const StepProgram program = step_for_memory(step_input(scenario));
  return fullest_footprint(scenario, program,
                           [&](Rank lane) { return timeline_in_order(program.graph, lane); });
}

std::int64_t largest_micro_batch(const Scenario& scenario, double chance) {
  Scenario changed = scenario;
  const auto fits = [&](std::int64_t micro_batch) {
    changed.job.micro_batch = micro_batch;
    return footprint(changed).chance() >= chance;
  };
  if (!fits(1)) return 0;
  std::int64_t good = 1, bad = 2;
  constexpr std::int64_t most = 1 << 16;
  while (bad < most && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

Footprint fullest_footprint(const Scenario& scenario, const StepProgram& program,
                            const std::function<Timeline(Rank)>& step) {
  if (program.stages.empty()) return footprint_of(scenario, program.resident, step(0));
  Scenario own = scenario;
  Footprint fullest;
  double first = 0;
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    const StepStage& stage = program.stages[i];
    own.model = stage.model;
    Footprint of_stage = footprint_of(own, stage.resident, step(stage.lane));
    of_stage.stage = {i, program.stages.size()};
    if (i == 0) first = of_stage.device.peak.bytes;
    if (i == 0 || of_stage.margin.value < fullest.margin.value) fullest = std::move(of_stage);
  }
  fullest.first_stage = first;
  return fullest;
}

Breakdown mean_breakdown(const std::vector<StepStage>& stages, const OpGraph& graph,
                         const Trace& trace) {
  if (stages.empty()) return break_down(graph, trace, busiest_rank(graph, trace));
  const double share = 1 / static_cast<double>(stages.size());
  ByCause<BreakdownRow> rows{};
  Breakdown mean;
  for (const StepStage& stage : stages) {
    const Breakdown own = break_down(graph, trace, stage.lane);
    mean.idle += own.idle * share;
    for (const BreakdownRow& row : own.rows) {
      BreakdownRow& sum = rows[index(row.cause)];
      sum.cause = row.cause;
      sum.exposed += row.exposed * share;
      sum.hidden += row.hidden * share;
    }
  }
  for (const BreakdownRow& row : rows)
    if (row.exposed.value + row.hidden.value > 0) mean.rows.push_back(row);
  std::ranges::stable_sort(mean.rows,
                           [](const auto& a, const auto& b) { return a.exposed > b.exposed; });
  return mean;
}

}  // namespace stepsim
