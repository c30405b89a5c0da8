#include "analysis/studies/predict/prediction.hpp"

#include "analysis/studies/predict/stages.hpp"
#include "sim/replay.hpp"
#include "workloads/step/step.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

Seconds wall_of(const Job& job, const Prediction& p) {
  Seconds wall = p.step_time * (p.length->optimizer_steps - job.resume.after);
  if (p.saving) wall += p.saving->time * p.saving->count;
  if (p.resuming) wall += p.resuming->time;
  return wall;
}

}  // namespace

std::size_t count_operations(const Scenario& scenario) {
  return build_step(
             {scenario.cluster, scenario.model, scenario.stack, scenario.strategy, scenario.job},
             Folding::automatic)
      .graph.size();
}

Prediction predict(const Scenario& scenario, Folding folding, CauseSet free) {
  const StepInput input{scenario.cluster, scenario.model, scenario.stack, scenario.strategy,
                        scenario.job};
  StepProgram program = build_step(input, folding);
  Prediction result;
  result.saving = saving_cost(scenario);
  result.resuming = resuming_cost(scenario);
  Run& run = result.run;
  run.scenario = scenario.text;
  run.platform = program.traffic.folded.platform;
  run.lane_sizes = program.traffic.folded.lane_sizes;
  run.constants = scenario.constants;
  run.graph = free.empty() ? std::move(program.graph) : idealised(program.graph, free);
  run.trace = replay(run.platform, run.graph);

  const double ranks = static_cast<double>(scenario.cluster.ranks());
  result.step_time = run.trace.makespan;
  result.tokens_per_second_per_gpu = program.tokens / result.step_time.value / ranks;
  result.flops = program.flops;
  const double possible = result.step_time.value * scenario.cluster.gpu.peak.bf16.value.value;
  result.utilisation = program.flops.total() / possible;
  result.utilisation_in_rows =
      (program.flops.matrices + program.flops.attention_in_rows) / possible;
  result.iterations_per_second =
      static_cast<double>(scenario.job.accumulation) / result.step_time.value;
  result.length = run_length(scenario.job, mesh_of(scenario.strategy, scenario.cluster).data());
  if (result.length) result.wall = wall_of(scenario.job, result);
  result.breakdown = mean_breakdown(program.stages, run.graph, run.trace);
  result.memory = fullest_footprint(
      scenario, program, [&](Rank lane) { return timeline_of(run.graph, run.trace, lane); });
  for (const NamedConstant& constant : scenario.constants)
    if (constant.grade == Grade::guess) result.guesses.push_back(constant);
  run.summary = {{"step_time", result.step_time.value, Dimension::seconds},
                 {"tokens_per_second_per_gpu", result.tokens_per_second_per_gpu, Dimension::ratio},
                 {"model_flops_utilisation", result.utilisation, Dimension::ratio},
                 {"peak_memory", result.memory.device.peak.bytes, Dimension::bytes},
                 {"memory_needed", result.memory.needed(), Dimension::bytes},
                 {"memory_capacity", result.memory.capacity, Dimension::bytes}};
  return result;
}

}  // namespace stepsim
