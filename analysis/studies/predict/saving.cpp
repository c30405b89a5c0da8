#include "analysis/studies/predict/saving.hpp"

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

}  // namespace stepsim
