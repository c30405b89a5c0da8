#include "analysis/studies/fidelity/validation.hpp"

#include <algorithm>
#include <array>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// A worker answers this about one scenario: all metrics, the verdict, and what it rests on.
struct ScenarioAnswer {
  std::array<double, metric_specs.size()> figures{};  // [Metric]; 0: unknown
  Fit fit{};
  double needed = 0, capacity = 0;
  std::array<double, memory_kind_names.size()> counted{};  // [MemoryKind]

  double& of(Metric metric) { return figures[static_cast<std::size_t>(metric)]; }
  double& of(MemoryKind kind) { return counted[static_cast<std::size_t>(kind)]; }
};

ScenarioAnswer grpo_figures(const Scenario& scenario) {
  const GrpoPrediction p = predict_grpo(scenario);
  ScenarioAnswer answer{.fit = p.memory.failure ? Fit::oom : Fit::fits,
                        .needed = p.memory.learner.most(),
                        .capacity = p.memory.learner_capacity};
  answer.of(Metric::step_time) = p.step_time.value;
  answer.of(Metric::wall) = answer.of(Metric::epoch_time) = p.wall.value;
  answer.of(Metric::tokens_per_second_per_gpu) = p.trained_per_second / scenario.cluster.ranks();
  answer.of(Metric::memory) = p.memory.learner.most();
  answer.of(Metric::state_memory) = p.memory.learner.start;
  answer.of(Metric::training_time) = p.training;
  answer.of(Metric::sync_time) = p.sync;
  answer.counted.fill(p.memory.learner.most());
  return answer;
}

ScenarioAnswer figures_of(const Scenario& scenario) {
  if (scenario.grpo) return grpo_figures(scenario);
  const Prediction p = predict(scenario, Kept::figures);
  Footprint memory = p.memory;
  ScenarioAnswer answer{
      .fit = p.memory.fit(), .needed = p.memory.needed(), .capacity = p.memory.capacity};
  answer.of(Metric::step_time) = p.step_time.value;
  answer.of(Metric::wall) = p.wall.value;
  answer.of(Metric::epoch_time) = p.wall.value / (p.length ? p.length->epochs : 1);
  answer.of(Metric::iterations_per_second) = p.iterations_per_second;
  answer.of(Metric::tokens_per_second_per_gpu) = p.tokens_per_second_per_gpu;
  answer.of(Metric::memory) = p.memory.needed();
  answer.of(Metric::state_memory) = p.memory.states;
  answer.of(Metric::energy) = p.energy ? p.energy->total() : 0;
  answer.of(Metric::job_energy) = p.job_energy.value;
  answer.of(MemoryKind::allocated) = p.memory.device.peak.bytes;
  for (const auto& each : {scenario.measured, scenario.estimated})
    if (each && each->memory_counts && *each->memory_counts != MemoryKind::allocated)
      memory.reserved = reserved_in_order(scenario, p.memory);
  answer.of(MemoryKind::reserved) = memory.reserved;
  answer.of(MemoryKind::device) = memory.shown();
  return answer;
}

// The stated one first, then its draws.
using Answers = std::span<const ScenarioAnswer>;

const std::optional<Observation>& observed(const Scenario& scenario, Against against) {
  return against == Against::measured ? scenario.measured : scenario.estimated;
}

double figure_of(const ScenarioAnswer& answer, const Observation& observation, Metric metric) {
  if (metric == Metric::memory && observation.memory_counts)
    return answer.counted[static_cast<std::size_t>(*observation.memory_counts)];
  return answer.figures[static_cast<std::size_t>(metric)];
}

void compare(const NamedScenario& named, const Observation& observation, Answers answers,
             Validation& result) {
  const Scenario& scenario = named.scenario;
  const ScenarioAnswer& stated = answers.front();
  bool ran = false;
  for (std::size_t i = 0; i < metric_specs.size(); ++i) {
    const auto metric = static_cast<Metric>(i);
    if (!observation.of(metric)) continue;
    ran = ran || metric != Metric::state_memory;
    ValidatedFigure figure{named.id, scenario.family,      metric, *observation.of(metric), {},
                           0,        observation.bands[i], {}};
    if (const double predicted = figure_of(stated, observation, metric); predicted > 0) {
      figure.predicted = predicted;
      figure.error = error_against(figure.observed, predicted);
      std::vector<double> drawn;
      for (const ScenarioAnswer& answer : answers.subspan(1))
        if (const double value = figure_of(answer, observation, metric); value > 0)
          drawn.push_back(value);
      if (!drawn.empty()) figure.interval = range_of(std::move(drawn), predicted);
    }
    result.figures.push_back(std::move(figure));
  }
  if (observation.fits || ran)
    result.verdicts.push_back({named.id, scenario.family, observation.fits.value_or(true),
                               stated.fit, stated.needed, stated.capacity});
}

FamilyErrors errors_of(const std::string& family, const std::vector<ValidatedFigure>& figures) {
  FamilyErrors errors;
  errors.name = family;
  std::vector<double> sizes;
  double sum = 0;
  for (const ValidatedFigure& figure : figures) {
    if (figure.family != family || !figure.predicted) continue;
    sizes.push_back(std::abs(figure.error));
    sum += figure.error;
  }
  errors.rows = sizes.size();
  if (sizes.empty()) return errors;
  std::ranges::sort(sizes);
  errors.median_abs_error = quantile(sizes, 0.5);
  errors.p90_abs_error = quantile(sizes, 0.9);
  errors.signed_mean = sum / static_cast<double>(sizes.size());
  return errors;
}

}  // namespace

Validation validate(std::span<const NamedScenario> scenarios, Against against,
                    const Sampling& sampling, const Progress& progress) {
  Validation result;
  std::vector<const NamedScenario*> asked;
  Tasks<ScenarioAnswer> tasks;
  for (const NamedScenario& named : scenarios) {
    if (!observed(named.scenario, against)) continue;
    asked.push_back(&named);
    tasks.emplace_back([&named] { return figures_of(named.scenario); });
    for (std::uint32_t sample = 0; sample < sampling.samples; ++sample)
      tasks.emplace_back([&named, &sampling, sample] {
        const Draw draw{.seed = sampling.seed, .sample = sample, .of = sampling.samples};
        return figures_of(load_scenario(sampling.data, named.file, {}, draw));
      });
  }
  const std::vector<ScenarioAnswer> answers = in_workers(tasks, usual_workers(), progress);
  const std::size_t each = sampling.samples + 1;
  for (std::size_t i = 0; i < asked.size(); ++i)
    compare(*asked[i], *observed(asked[i]->scenario, against),
            Answers(answers).subspan(i * each, each), result);
  const auto by_family = [](const auto& a, const auto& b) { return a.family < b.family; };
  std::ranges::stable_sort(result.figures, by_family);
  std::ranges::stable_sort(result.verdicts, by_family);
  std::vector<std::string> families = mapped(result.figures, &ValidatedFigure::family);
  families.erase(std::unique(families.begin(), families.end()), families.end());
  for (const std::string& family : families)
    result.families.push_back(errors_of(family, result.figures));
  return result;
}

}  // namespace stepsim
