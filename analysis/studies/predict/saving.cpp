#include "analysis/studies/predict/saving.hpp"

#include <cmath>

#include "analysis/studies/predict/replayed_step.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

Seconds replayed(const MomentProgram& program, const Player& player) {
  return player.play(program.traffic.folded.platform, program.graph, Watched::times).makespan;
}

SavingCost saving_cost(const Scenario& scenario, const Player& player) {
  const StepInput input = step_input(scenario);
  SavingCost cost;
  cost.files = checkpoint_of(rank_part(input));
  cost.time = replayed(build_save(input, Folding::automatic), player);
  if (scenario.job.save.asynchronous) {
    Scenario waiting = scenario;
    waiting.job.save.asynchronous = false;
    cost.behind = replayed(build_save(step_input(waiting), Folding::automatic), player) - cost.time;
  }
  if (const auto length = run_length(scenario))
    cost.count = saves_of(scenario.job, length->optimizer_steps);
  return cost;
}

std::optional<EvaluationCost> evaluation_cost(const Scenario& scenario, const Player& player) {
  const StepInput input = step_input(scenario);
  const auto pass = evaluation_of(input);
  if (!pass) return std::nullopt;
  const Evaluating& evaluation = scenario.job.evaluation;
  const StepProgram program = build_step(*pass, Folding::automatic);
  EvaluationCost cost{
      .pass = player.play(program.traffic.folded.platform, program.graph, Watched::times).makespan};
  const double rows = static_cast<double>(evaluation.micro_batch) *
                      static_cast<double>(mesh_of(scenario.strategy, scenario.cluster).data());
  double held = evaluation.rows < 1 ? 0 : evaluation.rows;
  if (const auto length = run_length(scenario)) {
    if (evaluation.rows < 1)
      held = evaluation.rows * length->effective_batch * length->optimizer_steps / length->epochs;
    const double done = scenario.job.resume.after;
    cost.count = evaluation.until(length->optimizer_steps, length->epochs) -
                 evaluation.until(done, length->epochs * done / length->optimizer_steps);
  }
  cost.passes = std::ceil(held / rows);
  return cost;
}

std::optional<ResumingCost> resuming_cost(const Scenario& scenario, const Player& player) {
  if (scenario.job.resume.after <= 0) return std::nullopt;
  const StepInput input = step_input(scenario);
  const Checkpoint files = checkpoint_of(rank_part(input));
  ResumingCost cost;
  cost.bytes = files.owners * files.states + scenario.cluster.ranks() * files.model_states;
  if (scenario.job.resume.skip == SkipData::batches)
    cost.skipped = skipped_iterations(scenario.job, run_length(scenario));
  cost.time = replayed(build_resume(input, cost.skipped, Folding::automatic), player);
  return cost;
}

Goodput goodput_of_job(const Scenario& scenario, Seconds step, const WholeJob& job,
                       const Player& player) {
  const Failures& failures = scenario.job.failures;
  JobCourse course = course_of(failures, scenario.cluster);
  course.step = step.value;
  if (job.length) course.steps = job.length->optimizer_steps - scenario.job.resume.after;
  if (course.interval == 0) course.interval = static_cast<std::int64_t>(scenario.job.save.every);
  if (failures.save.value > 0) {
    course.save = failures.save.value;
  } else {
    const SavingCost saving = job.saving ? *job.saving : saving_cost(scenario, player);
    course.save = saving.time.value;
    course.behind = saving.behind.value;
  }
  const StepInput input = step_input(scenario);
  const Seconds read = scenario.cluster.node.count(PartKind::nvme) > 0
                           ? replayed(build_resume(input, 0, Folding::automatic), player)
                           : Seconds{};
  const Seconds usual = scenario.stack.host.restart.value;
  course.restart = (failures.notice + failures.start.value_or(usual) + read).value;
  return goodput_of(course);
}

}  // namespace

WholeJob whole_job(const Scenario& scenario, Seconds step, const Player& player) {
  const Job& job = scenario.job;
  WholeJob whole{.length = run_length(scenario),
                 .saving = {},
                 .evaluation = evaluation_cost(scenario, player),
                 .resuming = resuming_cost(scenario, player),
                 .goodput = {}};
  if (job.save.every > 0) {
    whole.saving = saving_cost(scenario, player);
    // One is written after the other.
    const Seconds open = whole.saving->behind - step * job.save.every;
    whole.saving->time += std::max(open, Seconds{0});
  }
  if (job.failures.any()) whole.goodput = goodput_of_job(scenario, step, whole, player);
  if (!whole.length) return whole;
  whole.wall = step * (whole.length->optimizer_steps - job.resume.after);
  if (whole.saving) whole.wall += whole.saving->time * whole.saving->count;
  if (whole.goodput) whole.wall = whole.goodput->wall;
  if (whole.evaluation) whole.wall += whole.evaluation->time() * whole.evaluation->count;
  if (whole.resuming) whole.wall += whole.resuming->time;
  return whole;
}

std::optional<LossCost> loss_cost(const Scenario& scenario, const Player& player) {
  const ClusterEvents& events = scenario.cluster.events;
  if (!events.lost_at) return std::nullopt;
  Scenario whole = scenario;
  whole.cluster.events.lost_at.reset();
  const StepInput input = step_input(whole);
  LossCost cost{.what = events.lost, .at = {*events.lost_at}};
  cost.step = replay_step(input, {.player = player}).trace.makespan;
  cost.saved = scenario.job.save.every > 0;
  if (!cost.saved) return cost;
  cost.resume = replayed(build_resume(input, 0, Folding::automatic), player);
  cost.steps_again = scenario.job.save.every / 2.0;
  return cost;
}

}  // namespace stepsim
