#include "workloads/step/step.hpp"

#include "sim/stretch.hpp"
#include "workloads/program/activations.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/sharding/schemes.hpp"
#include "workloads/sharding/step_plans.hpp"

namespace stepsim {
namespace {

template <StepSchedule S>
void write_step(StepWriter& writer, const std::vector<Visit>& visits) {
  const StepInput& input = writer.input();
  S schedule(writer, visits);
  Activations activations(writer, visits);
  const double core = input.cluster.node.host.core_speed.value.value;
  writer.context = {Phase::other, -1, 0};
  const std::int64_t batches = input.job.only_update ? 0 : input.job.accumulation;
  if (batches > 0) writer.host(input.stack.host.step.value / core, Cause::other, "step_overhead");
  for (std::int64_t micro = 0; micro < batches; ++micro) {
    const bool last = micro + 1 == input.job.accumulation;
    for (std::size_t i = 0; i < visits.size(); ++i) {
      const Visit& visit = visits[i];
      writer.context = {visit.phase, visit.layer, static_cast<std::int16_t>(micro)};
      schedule.before(i);
      activations.before(i);
      activations.ran(i, run_visit(writer, visit));
      schedule.after(i, last);
    }
    schedule.finish_backward(last);
    if (last) sum_norms(writer, visits);
  }
  schedule.step();
}

OpGraph write_step(const RankPart& rank, const Traffic& traffic, Written written) {
  const StepInput& input = rank.input;
  ProgramBuilder builder(traffic, written);
  StepWriter writer(rank, builder);
  const bool with_reference = input.job.has_reference();
  const ModelUnits reference = with_reference ? rank.units : ModelUnits{};
  const std::vector<Visit> visits =
      visits_of(rank.units, with_reference ? &reference : nullptr, input.job.scoring_passes);
  with_scheme(input.strategy,
              [&]<Scheme S>() { write_step<typename S::Schedule>(writer, visits); });
  return builder.take();
}

}  // namespace

StepProgram build_step(const StepInput& input, Folding folding, Written written) {
  StepProgram program;
  const RankPart rank = rank_part(input);
  if (input.strategy.pipeline_parallel.size > 1) {
    PipelineProgram pipeline = build_pipeline(rank, folding);
    program.traffic = std::move(pipeline.traffic);
    program.graph = std::move(pipeline.graph);
    program.stages = std::move(pipeline.stages);
    program.resident = program.stages.front().resident;
  } else {
    program.traffic = make_traffic(machinery_of(input.cluster), step_plans(rank).take(), folding);
    program.graph = write_step(rank, program.traffic, written);
    program.resident = resident_of(rank);
  }
  stretch(program.traffic.folded.platform, program.graph, input.stack.unexplained.value.value);
  if (input.job.only_update) return program;
  program.flops = model_flops(input);
  program.tokens = static_cast<double>(rank.mesh.data()) * input.job.slots() *
                   static_cast<double>(input.job.accumulation) * input.job.fill;
  return program;
}

}  // namespace stepsim
