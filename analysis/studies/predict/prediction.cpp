#include "analysis/studies/predict/prediction.hpp"

#include <fmt/format.h>

#include "workloads/strategy/mesh.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

std::optional<Energy> energy_of(const Scenario& scenario, const ReplayedStep& step) {
  const auto power = power_of(scenario.cluster);
  if (!power) return std::nullopt;
  return energy_of(step.program.graph, step.trace, step.program.traffic.folded.lane_sizes, *power);
}

// Returns the energy of the whole job. While a checkpoint is written or read, all ranks stand.
Joules job_energy_of(const std::optional<Energy>& energy, Seconds step_time, Seconds wall,
                     double steps) {
  if (!energy || wall.value <= 0) return {0};
  return Joules{steps * energy->total()} + energy->standing * (wall - steps * step_time);
}

// Returns the steps that a job takes from here, those that it does again after failures as well.
// Ranks compute in evaluations as they do in steps, so these count as so many steps as they last.
double steps_taken(const Scenario& scenario, const WholeJob& job, Seconds step) {
  double again = job.goodput ? job.goodput->lost * (job.goodput->wall / step) : 0;
  if (job.evaluation) again += job.evaluation->count * (job.evaluation->time() / step);
  return job.length->optimizer_steps - scenario.job.resume.after + again;
}

}  // namespace

double tokens_per_second_per_gpu(const Scenario& scenario, double tokens, Seconds step_time) {
  return tokens / step_time.value / static_cast<double>(scenario.cluster.ranks());
}

Footprint memory_of(const Scenario& scenario, const StepProgram& program, const Trace& trace) {
  const Job& job = scenario.job;
  if (usual_rows(job, scenario.strategy, scenario.cluster).sequence < job.sequence)
    return footprint(scenario);
  return fullest_footprint(scenario, program,
                           [&](Rank lane) { return timeline_of(program.graph, trace, lane); });
}

StepFigures step_figures(const Scenario& scenario, CauseSet free, Asked asked) {
  const ReplayedStep step = replay_step(step_input(scenario), {.free = free});
  const StepProgram& program = step.program;
  const Trace& trace = step.trace;
  StepFigures figures;
  figures.step_time = trace.makespan;
  const auto loss = loss_cost(scenario);
  const Seconds whole = loss ? loss->step : trace.makespan;
  figures.tokens_per_second_per_gpu = tokens_per_second_per_gpu(scenario, program.tokens, whole);
  const WholeJob job = whole_job(scenario, whole);
  figures.wall = job.wall;
  if (asked == Asked::times) return figures;
  figures.memory = memory_of(scenario, program, trace).needed();
  if (const auto energy = energy_of(scenario, step)) {
    figures.energy = {energy->total()};
    if (job.length)
      figures.job_energy =
          job_energy_of(energy, figures.step_time, figures.wall, steps_taken(scenario, job, whole));
  }
  return figures;
}

Prediction predict(const Scenario& scenario, Kept kept, const Replaying& how) {
  ReplayedStep step = kept == Kept::run ? replay_whole_step(step_input(scenario), how)
                                        : replay_step(step_input(scenario), how);
  const StepProgram& program = step.program;
  const OpGraph& graph = program.graph;
  const Trace& trace = step.trace;
  Prediction result;
  result.loss = loss_cost(scenario, how.player);
  result.operations = step.operations;
  result.played_by = trace.by;
  result.step_time = trace.makespan;
  // A job is made of steps that end.
  const Seconds whole = result.loss ? result.loss->step : trace.makespan;
  result.tokens_per_second_per_gpu = tokens_per_second_per_gpu(scenario, program.tokens, whole);
  result.flops = program.flops;
  const double possible = whole.value * scenario.cluster.gpu.peak.bf16.value.value;
  result.utilisation = program.flops.total() / possible;
  result.utilisation_in_rows =
      (program.flops.matrices + program.flops.attention_in_rows) / possible;
  result.iterations_per_second = static_cast<double>(scenario.job.accumulation) / whole.value;
  const WholeJob job = whole_job(scenario, whole, how.player);
  result.length = job.length;
  result.saving = job.saving;
  result.evaluation = job.evaluation;
  result.resuming = job.resuming;
  result.goodput = job.goodput;
  result.wall = job.wall;
  result.energy = energy_of(scenario, step);
  if (result.length)
    result.job_energy = job_energy_of(result.energy, result.step_time, result.wall,
                                      steps_taken(scenario, job, whole));
  result.breakdown = mean_breakdown(program.stages, graph, trace);
  result.memory = memory_of(scenario, program, trace);
  for (const NamedConstant& constant : scenario.constants)
    if (constant.grade == Grade::guess) result.guesses.push_back(constant);
  if (kept == Kept::figures) return result;
  Run& run = result.run;
  run.scenario = scenario.text;
  run.platform = std::move(step.program.traffic.folded.platform);
  run.lane_sizes = std::move(step.program.traffic.folded.lane_sizes);
  run.constants = scenario.constants;
  run.graph = std::move(step.program.graph);
  run.trace = std::move(step.trace);
  run.summary = {{"step_time", result.step_time.value, Dimension::seconds},
                 {"tokens_per_second_per_gpu", result.tokens_per_second_per_gpu, Dimension::ratio},
                 {"model_flops_utilisation", result.utilisation, Dimension::ratio},
                 {"peak_memory", result.memory.device.peak.bytes, Dimension::bytes},
                 {"memory_needed", result.memory.needed(), Dimension::bytes},
                 {"memory_capacity", result.memory.capacity, Dimension::bytes}};
  if (result.energy) run.summary.push_back({"energy", result.energy->total(), Dimension::joules});
  for (const Holding& each : program.resident.holdings)
    if (each.pool == Pool::device)
      run.summary.push_back(
          {fmt::format("held_{}", to_text(each.held)), each.bytes, Dimension::bytes});
  return result;
}

}  // namespace stepsim
