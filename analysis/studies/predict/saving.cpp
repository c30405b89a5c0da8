#include "analysis/studies/predict/saving.hpp"

#include "sim/replay.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

Seconds replayed(const std::function<MomentProgram()>& build) {
  const MomentProgram program = build();
  return replay(program.traffic.folded.platform, program.graph, Watched::times).makespan;
}

}  // namespace

std::optional<SavingCost> saving_cost(const Scenario& scenario) {
  if (scenario.job.save.every <= 0) return std::nullopt;
  const StepInput input = step_input(scenario);
  SavingCost cost;
  cost.files = checkpoint_of(rank_part(input));
  cost.time = replayed([&] { return build_save(input, Folding::automatic); });
  if (const auto length = run_length(scenario))
    cost.count = saves_of(scenario.job, length->optimizer_steps);
  return cost;
}

std::optional<ResumingCost> resuming_cost(const Scenario& scenario) {
  if (scenario.job.resume.after <= 0) return std::nullopt;
  const StepInput input = step_input(scenario);
  const Checkpoint files = checkpoint_of(rank_part(input));
  ResumingCost cost;
  cost.bytes = files.owners * files.states + scenario.cluster.ranks() * files.model_states;
  if (scenario.job.resume.skip == SkipData::batches)
    cost.skipped = skipped_iterations(scenario.job, run_length(scenario));
  cost.time = replayed([&] { return build_resume(input, cost.skipped, Folding::automatic); });
  return cost;
}

}  // namespace stepsim
