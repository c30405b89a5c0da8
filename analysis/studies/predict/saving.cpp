#include "analysis/studies/predict/saving.hpp"

#include "analysis/studies/predict/replayed_step.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

Seconds replayed(const MomentProgram& program, const Player& player) {
  return player.play(program.traffic.folded.platform, program.graph, Watched::times).makespan;
}

}  // namespace

std::optional<SavingCost> saving_cost(const Scenario& scenario, const Player& player) {
  if (scenario.job.save.every <= 0) return std::nullopt;
  const StepInput input = step_input(scenario);
  SavingCost cost;
  cost.files = checkpoint_of(rank_part(input));
  cost.time = replayed(build_save(input, Folding::automatic), player);
  if (const auto length = run_length(scenario))
    cost.count = saves_of(scenario.job, length->optimizer_steps);
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
