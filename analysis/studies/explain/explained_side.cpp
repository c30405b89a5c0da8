#include "analysis/studies/explain/explained_side.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/own/replay.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {
namespace {

ExplainedSide side_of(const Prediction& p) {
  ExplainedSide side{.step_time = p.step_time,
                     .tokens_per_second_per_gpu = p.tokens_per_second_per_gpu,
                     .needed = p.memory.needed(),
                     .capacity = p.memory.capacity,
                     .fit = p.memory.fit(),
                     .energy = {p.energy ? p.energy->total() : 0},
                     .operations = p.operations,
                     .played_by = p.played_by,
                     .idle = p.breakdown.idle};
  for (const BreakdownRow& row : p.breakdown.rows)
    side.causes[index(row.cause)] = {row.exposed, row.hidden};
  return side;
}

PathPart part_of(std::string name, Phase pass, std::vector<std::pair<Cause, Seconds>> causes) {
  PathPart part;
  part.pass = pass;
  part.causes = std::move(causes);
  part.name = std::move(name);
  std::erase_if(part.causes, [](const auto& each) { return each.second.value <= 0; });
  std::ranges::stable_sort(part.causes,
                           [](const auto& x, const auto& y) { return x.second > y.second; });
  for (const auto& [cause, seconds] : part.causes) part.seconds += seconds;
  return part;
}

// Its phases follow each other: a mean step waits, trains, and hands its weights over.
ExplainedStep observed(const Scenario& scenario, const GrpoPrediction& p) {
  const GrpoPhases& phases = p.phases;
  std::vector<std::pair<Cause, Seconds>> training;
  const double scale = p.training_parts.seconds > 0 ? p.training / p.training_parts.seconds : 0;
  for (std::size_t i = 0; i < cause_count; ++i)
    training.emplace_back(static_cast<Cause>(i), Seconds{scale * p.training_parts.exposed[i]});
  const double sending =
      phases.gather + phases.broadcast + phases.per_tensor + phases.parking + phases.pause;
  ExplainedStep seen;
  seen.side = {.step_time = p.step_time,
               .tokens_per_second_per_gpu = p.trained_per_second / scenario.cluster.ranks(),
               .needed = p.memory.learner.most(),
               .capacity = p.memory.learner_capacity,
               .fit = p.memory.failure ? Fit::oom : Fit::fits,
               .operations = p.run.events,
               .played_by = p.played_by,
               .idle = {scale * p.training_parts.idle}};
  seen.parts = {
      part_of("wait for a batch", Phase::generate,
              {{Cause::launch, {p.generation.launches}},
               {Cause::compute, {p.generation.passes}},
               {Cause::generation, {phases.wait - p.generation.launches - p.generation.passes}}}),
      part_of("training", Phase::other, training),
      part_of("engines finish", Phase::sync, {{Cause::generation, {phases.drain}}}),
      part_of("weight sync", Phase::sync,
              {{Cause::weight_sync, {sending}}, {Cause::generation, {phases.iterations}}})};
  std::erase_if(seen.parts, [](const PathPart& part) { return part.seconds.value <= 0; });
  for (const PathPart& part : seen.parts)
    for (const auto& [cause, seconds] : part.causes)
      seen.side.causes[index(cause)].exposed += seconds;
  CauseTime& generation = seen.side.causes[index(Cause::generation)];
  const double learners = p.generation.launches + p.generation.passes;
  generation.hidden = {
      std::max(0.0, p.engine_busy * p.step_time.value - learners - generation.exposed.value)};
  return seen;
}

void require_start(const NamedStep& step, const GrpoPrediction& p) {
  if (p.ran) return;
  throw UserError(fmt::format("{}: has no steps to compare: {}", step.label,
                              p.memory.failure.value_or("an engine cannot start")));
}

// Refuses a step in which a GPU is lost: it ends early, which is no advantage.
void require_end(const NamedStep& step, const Prediction& p) {
  if (!p.loss) return;
  throw UserError(
      fmt::format("{}: has no whole step to compare: {} is lost after {} "
                  "(cluster.events)",
                  step.label, p.loss->what, to_text(p.loss->at)));
}

// Counts the rows and tokens of a step of all ranks.
void count_work(const Scenario& scenario, ExplainedSide& side) {
  const Job& job = scenario.job;
  if (scenario.grpo) {
    side.sequences = scenario.grpo->responses();
    side.tokens = side.tokens_per_second_per_gpu * side.gpus * side.step_time.value;
    return;
  }
  side.sequences = static_cast<double>(job.rows() * job.accumulation) * side.gpus;
  side.tokens = side.sequences * static_cast<double>(job.sequence) * job.fill;
}

// Returns whether --set changed the scenario: then it is no longer the run that somebody measured.
bool is_changed(const Scenario& scenario) {
  return std::ranges::any_of(scenario.said,
                             [](const SaidKey& key) { return key.origin.source == "--set"; });
}

}  // namespace

ExplainedStep observe(const NamedStep& step, const Player& player) {
  ExplainedStep seen = in_worker([&] {
    const Scenario& scenario = step.scenario;
    if (!scenario.grpo) {
      const Prediction p = predict(scenario, Kept::run, {.player = player});
      require_end(step, p);
      return ExplainedStep{side_of(p),
                           path_parts(p.run.graph, p.run.trace, all_layers(scenario.model))};
    }
    const GrpoPrediction p = predict_grpo(scenario, {.player = player});
    require_start(step, p);
    return observed(scenario, p);
  });
  seen.side.label = step.label;
  seen.side.title = step.scenario.name;
  if (step.scenario.measured && !is_changed(step.scenario))
    seen.side.measured = step.scenario.measured->of(Metric::step_time);
  seen.side.gpus = step.scenario.cluster.ranks();
  seen.side.path = step.scenario.grpo ? seen.parts : folded(seen.parts);
  count_work(step.scenario, seen.side);
  return seen;
}

DrawnFigures draw_figures(const NamedStep& step) {
  const ExplainedSide side =
      step.scenario.grpo ? observe(step).side : side_of(predict(step.scenario, Kept::figures));
  DrawnFigures figures{.step_time = side.step_time,
                       .tokens_per_second_per_gpu = side.tokens_per_second_per_gpu,
                       .needed = side.needed,
                       .idle = side.idle};
  for (std::size_t i = 0; i < cause_count; ++i) figures.exposed[i] = side.causes[i].exposed;
  return figures;
}

Seconds step_time_of(const Scenario& scenario, CauseSet free) {
  if (scenario.grpo) return predict_grpo(scenario, {.free = free}).step_time;
  return replay_step(step_input(scenario), {.free = free}).trace.makespan;
}

ByCause<Seconds> times_without(const Scenario& scenario, const ExplainedSide& side,
                               const SettingOptions& options) {
  ByCause<Seconds> times;
  times.fill(side.step_time);
  std::vector<std::size_t> there;
  Tasks<Seconds> tasks;
  for (std::size_t i = 0; i < cause_count; ++i) {
    if ((side.causes[i].exposed + side.causes[i].hidden).value <= 0) continue;
    there.push_back(i);
    tasks.emplace_back(
        [&scenario, free = CauseSet(1u << i)] { return step_time_of(scenario, free); });
  }
  const std::vector<Seconds> answers = in_workers(tasks, options.workers, options.progress);
  for (std::size_t i = 0; i < there.size(); ++i) times[there[i]] = answers[i];
  return times;
}

}  // namespace stepsim
