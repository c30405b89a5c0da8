#include "workloads/step/step.hpp"

#include <algorithm>
#include <functional>

#include "sim/platform.hpp"
#include "workloads/pipeline/step_traffic.hpp"
#include "workloads/program/activations.hpp"
#include "workloads/program/in_turns.hpp"
#include "workloads/sharding/schemes.hpp"

namespace stepsim {
namespace {

// The passes of a step, with what goes with every visit.
template <StepSchedule S>
struct MicroBatches {
  StepWriter& writer;
  const std::vector<Visit>& visits;
  S& schedule;
  Activations& activations;

  bool last(std::int64_t micro) const { return micro + 1 == writer.input().micro_batches(); }
  void before(const PassInTurns& pass, std::size_t i) {
    writer.context = {writer.input().job.only_evaluates ? Phase::evaluation : visits[i].phase,
                      visits[i].layer, static_cast<std::int32_t>(pass.micro_batch)};
    if (pass.sent) return;
    schedule.before(i);
    activations.before(i);
  }
  void ran(const PassInTurns& pass, std::size_t i, Mark compute) {
    activations.ran(i, compute);
    schedule.after(i, last(pass.micro_batch));
  }
  void run(std::size_t first, std::size_t end, std::int64_t micro) {
    const PassInTurns pass{.micro_batch = micro};
    for (std::size_t i = first; i < end; ++i) {
      before(pass, i);
      ran(pass, i, run_visit(writer, visits[i]));
    }
    if (end == visits.size() && !writer.input().job.only_evaluates) finish(micro);
  }
  void finish(std::int64_t micro) {
    schedule.finish_backward(last(micro));
    if (last(micro)) sum_norms(writer, visits);
  }

  // Each micro-batch goes forward beside the backward pass of the one before.
  void run_in_pairs(std::int64_t batches) {
    const auto backward = [](const Visit& visit) { return visit.phase != Phase::forward; };
    const auto middle =
        static_cast<std::size_t>(std::ranges::find_if(visits, backward) - visits.begin());
    if (batches > 0) run(0, middle, 0);
    for (std::int64_t micro = 0; micro + 1 < batches; ++micro) {
      PassInTurns back{.next = middle, .end = visits.size(), .micro_batch = micro};
      PassInTurns ahead{.next = 0, .end = middle, .micro_batch = micro + 1};
      run_in_turns(writer, visits, {&back, &ahead}, *this);
      finish(micro);
    }
    if (batches > 0) run(middle, visits.size(), batches - 1);
  }
};

// `before_update` is called when the last backward pass is written.
template <StepSchedule S>
void write_step(StepWriter& writer, const std::vector<Visit>& visits,
                const std::function<void()>& before_update) {
  const StepInput& input = writer.input();
  S schedule(writer, visits);
  Activations activations(writer, visits);
  const double core = input.cluster.node.host.core_speed.value.value;
  writer.context = {Phase::other, -1, 0};
  const std::int64_t batches = input.job.only_update ? 0 : input.micro_batches();
  if (batches > 0) writer.host(input.stack.host.step.value / core, Cause::other, "step_overhead");
  MicroBatches<S> around{writer, visits, schedule, activations};
  if (input.strategy.experts.overlaps && !input.job.only_evaluates)
    around.run_in_pairs(batches);
  else
    for (std::int64_t micro = 0; micro < batches; ++micro) around.run(0, visits.size(), micro);
  if (input.job.only_evaluates) return;
  before_update();
  schedule.step();
}

// `mapped` becomes the bytes of the device when the update begins.
OpGraph write_step(const RankPart& rank, const Traffic& traffic, Written written,
                   Allocator& allocator, bool mapping_costs, double& mapped) {
  const StepInput& input = rank.input;
  ProgramBuilder builder(traffic, written, input.job.budget);
  StepWriter writer(rank, builder);
  writer.allocate_through(allocator, mapping_costs);
  const bool with_reference = input.job.has_reference();
  const ModelUnits reference = with_reference ? rank.units : ModelUnits{};
  const std::vector<Visit> visits = visits_of(rank.units, other_passes(input.job, reference));
  with_scheme(input.strategy, [&]<Scheme S>() {
    write_step<typename S::Schedule>(writer, visits, [&] { mapped = allocator.mapped(); });
  });
  return builder.take();
}

// Writes a step as it is in the long run. If a step finds no room for a request, the next one finds
// memory as that one left it: it is that one which is written, with what giving back and mapping
// cost.
void write_alike(StepProgram& program, const RankPart& rank, Written written) {
  Allocator allocator = allocator_of(rank);
  double mapped = 0;
  program.graph = write_step(rank, program.traffic, written, allocator, false, mapped);
  program.resident.mapped_before_update = 0;
  if (!allocator.has_returned()) return;
  program.graph = write_step(rank, program.traffic, written, allocator, true, mapped);
  program.resident.mapped_before_update = mapped;
}

void add_neighbours(StepProgram& program, const ClusterEvents& events) {
  const std::size_t family = program.traffic.first_family[index(Plan::neighbours)];
  for (std::size_t i = 0; i < events.neighbours.size(); ++i) {
    const NodeTraffic& each = events.neighbours[i];
    program.graph.beside({.pattern = first_pattern(program.traffic, family + i),
                          .bytes = each.bytes,
                          .at = each.at,
                          .period = each.period});
  }
}

}  // namespace

StepProgram prepare_step(const RankPart& rank, Folding folding) {
  const StepInput& input = rank.input;
  StepProgram program;
  if (input.strategy.pipeline_parallel.size > 1) {
    PipelineRanks ranks = pipeline_ranks(rank, folding);
    program.traffic = std::move(ranks.traffic);
    program.stages = std::move(ranks.stages);
    program.resident = program.stages.front().resident;
  } else {
    program.traffic = step_traffic(rank, folding);
    program.resident = resident_of(rank);
  }
  stretch(program.traffic.folded.platform, input.stack.stretch(input.job));
  if (input.job.only_update) return program;
  program.flops = model_flops(input);
  program.tokens = static_cast<double>(rank.mesh.data()) * input.job.slots() *
                   static_cast<double>(input.job.accumulation) * input.job.fill;
  return program;
}

void write_step(StepProgram& program, const RankPart& rank, Written written) {
  if (program.stages.empty())
    write_alike(program, rank, written);
  else
    program.graph = write_pipeline(rank, program.traffic,
                                   written == Written::memory ? Written::figures : written);
  program.graph.stretch(rank.input.stack.stretch(rank.input.job));
  add_neighbours(program, rank.input.cluster.events);
}

std::optional<StepInput> evaluation_of(const StepInput& input) {
  if (input.job.evaluation.micro_batch == 0) return std::nullopt;
  StepInput pass = input;
  pass.job.only_evaluates = true;
  pass.job.micro_batch = input.job.evaluation.micro_batch;
  pass.job.accumulation = 1;
  pass.written = 0;
  return pass;
}

StepProgram build_step(const StepInput& input, Folding folding, Written written) {
  const RankPart rank = rank_part(input);
  StepProgram program = prepare_step(rank, folding);
  write_step(program, rank, written);
  return program;
}

}  // namespace stepsim
