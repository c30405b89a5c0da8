#include "analysis/studies/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "analysis/studies/grpo_prediction.hpp"
#include "analysis/studies/prediction.hpp"
#include "analysis/studies/worker.hpp"

namespace stepsim {
namespace {

// What a worker says of one scenario: all metrics, the verdict, and what it rests on.
struct Answer {
  std::array<double, metric_specs.size()> figures{};  // [Metric]; 0: unknown
  int fit = 0;
  double needed = 0, capacity = 0;
  std::array<double, memory_kind_names.size()> counted{};  // [MemoryKind]
};

std::string grpo_figures(const Scenario& scenario) {
  const GrpoPrediction p = predict_grpo(scenario);
  const double per_gpu = p.trained_per_second / scenario.cluster.ranks();
  const Fit fit = p.memory.failure ? Fit::oom : Fit::fits;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", p.step_time.value,
                     p.wall.value, p.wall.value, 0, per_gpu, p.memory.learner.most(),
                     p.memory.learner.start, p.training, p.sync, static_cast<int>(fit),
                     p.memory.learner.most(), p.memory.learner_capacity, p.memory.learner.most(),
                     p.memory.learner.most(), p.memory.learner.most());
}

std::string figures_of(const Scenario& scenario) {
  if (scenario.grpo) return grpo_figures(scenario);
  const Prediction p = predict(scenario, Folding::automatic);
  const double epochs = p.length ? p.length->epochs : 1;
  const std::array<double, metric_specs.size()> figures{p.step_time.value,
                                                        p.wall.value,
                                                        p.wall.value / epochs,
                                                        p.iterations_per_second,
                                                        p.tokens_per_second_per_gpu,
                                                        p.memory.needed(),
                                                        p.memory.states,
                                                        0,
                                                        0};
  std::string text;
  for (const double figure : figures) text += fmt::format("{} ", figure);
  const double allocated = p.memory.device.peak.bytes;
  return text + fmt::format("{} {} {} {} {} {}", static_cast<int>(p.memory.fit()),
                            p.memory.needed(), p.memory.capacity, allocated,
                            allocated + p.memory.slack, p.memory.shown());
}

Answer ask(const Scenario& scenario) {
  std::istringstream words(in_worker([&] { return figures_of(scenario); }));
  Answer answer;
  for (double& figure : answer.figures) words >> figure;
  words >> answer.fit >> answer.needed >> answer.capacity;
  for (double& bytes : answer.counted) words >> bytes;
  return answer;
}

const std::optional<Observation>& observed(const Scenario& scenario, Against against) {
  return against == Against::measured ? scenario.measured : scenario.estimated;
}

void compare(const NamedScenario& named, const Observation& observation, const Answer& answer,
             Validation& result) {
  const Scenario& scenario = named.scenario;
  bool ran = false;
  for (std::size_t i = 0; i < metric_specs.size(); ++i) {
    const auto metric = static_cast<Metric>(i);
    if (!observation.of(metric)) continue;
    ran = ran || metric != Metric::state_memory;
    ValidatedFigure figure{named.id, scenario.family,     metric, *observation.of(metric), {},
                           0,        observation.bands[i]};
    double predicted = answer.figures[i];
    if (metric == Metric::memory && observation.memory_counts)
      predicted = answer.counted[static_cast<std::size_t>(*observation.memory_counts)];
    if (predicted > 0) {
      figure.predicted = predicted;
      figure.error = error_against(figure.observed, predicted);
    }
    result.figures.push_back(std::move(figure));
  }
  if (observation.fits || ran)
    result.verdicts.push_back({named.id, scenario.family, observation.fits.value_or(true),
                               static_cast<Fit>(answer.fit), answer.needed, answer.capacity});
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
  std::sort(sizes.begin(), sizes.end());
  errors.median_abs_error = quantile(sizes, 0.5);
  errors.p90_abs_error = quantile(sizes, 0.9);
  errors.signed_mean = sum / static_cast<double>(sizes.size());
  return errors;
}

}  // namespace

double quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Validation validate(std::span<const NamedScenario> scenarios, Against against) {
  Validation result;
  for (const NamedScenario& named : scenarios)
    if (const auto& observation = observed(named.scenario, against))
      compare(named, *observation, ask(named.scenario), result);
  const auto by_family = [](const auto& a, const auto& b) { return a.family < b.family; };
  std::stable_sort(result.figures.begin(), result.figures.end(), by_family);
  std::stable_sort(result.verdicts.begin(), result.verdicts.end(), by_family);
  std::vector<std::string> families;
  families.reserve(result.figures.size());
  for (const ValidatedFigure& figure : result.figures) families.push_back(figure.family);
  families.erase(std::unique(families.begin(), families.end()), families.end());
  for (const std::string& family : families)
    result.families.push_back(errors_of(family, result.figures));
  return result;
}

}  // namespace stepsim
