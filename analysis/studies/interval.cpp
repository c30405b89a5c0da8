#include "analysis/studies/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "analysis/studies/grpo_prediction.hpp"
#include "analysis/studies/worker.hpp"
#include "sim/error.hpp"
#include "sim/replay.hpp"
#include "workloads/step.hpp"

namespace stepsim {
namespace {

double step_time(const IntervalQuestion& question, std::uint32_t sample) {
  const Scenario scenario =
      load_scenario(question.data, question.scenario, question.settings,
                    Draw{.seed = question.seed, .sample = sample, .of = question.samples});
  if (scenario.grpo) return predict_grpo(scenario).step_time.value;  // 0: engines cannot start
  const StepInput input{scenario.cluster, scenario.model, scenario.stack, scenario.strategy,
                        scenario.job};
  const StepProgram program = build_step(input, Folding::automatic);
  return replay(program.traffic.folded.platform, contracted(program.graph, question.free))
      .makespan.value;
}

// Between neighbours in order, linearly.
double quantile_of(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace

Interval step_time_interval(const IntervalQuestion& question) {
  std::vector<std::function<std::string()>> tasks;
  for (std::uint32_t sample = 0; sample < question.samples; ++sample)
    tasks.emplace_back(
        [&question, sample] { return fmt::format("{}", step_time(question, sample)); });
  std::vector<double> times;
  for (const std::string& answer : in_workers(tasks, usual_workers()))
    times.push_back(parse_quantity(answer)->value);
  std::erase_if(times, [](double time) { return time <= 0; });
  if (times.empty()) throw UserError("--samples: no draw of the constants can run");
  const auto drawn = static_cast<std::uint32_t>(times.size());
  std::sort(times.begin(), times.end());
  return {{quantile_of(times, 0.1)}, {quantile_of(times, 0.9)}, drawn};
}

}  // namespace stepsim
