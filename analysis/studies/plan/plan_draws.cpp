#include "analysis/studies/plan/plan_draws.hpp"

#include <array>
#include <span>
#include <stdexcept>

#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// These are the plans' figures under the same draws, [plan][draw]; `unreached`: it does not fit
// then.
struct DrawnPlans {
  std::uint32_t draws = 0;
  std::vector<std::vector<double>> times;
  std::vector<std::vector<double>> goals;  // what is to be least
};

// This is thrown where workers are waited for, and ends them.
struct DrawsStopped {};

// Draws go one after the other over all plans: those that are whole count.
DrawnPlans drawn_of(const PlanSpace& space, const PlanSearch& search,
                    const std::function<bool()>& stop, const std::vector<std::size_t>& plans) {
  const std::size_t count = plans.size() * search.samples;
  std::vector<std::vector<double>> answers(count);
  const auto task = [&](std::size_t i) {
    if (search.memory > 0) limit_worker(search.memory / static_cast<double>(search.workers));
    const auto draw = static_cast<std::uint32_t>(i / plans.size());
    const Outcome outcome = evaluate(
        search.data, space.sweep.scenario,
        settings_of(space.sweep, space.points[plans[i % plans.size()]]), draw_number(draw, 1));
    if (!outcome.feasible) return std::vector{unreached, unreached};
    return std::vector{outcome.of("step_time").value_or(unreached), goal_of(outcome, search.goal)};
  };
  const auto stop_if_told = [&] {
    if (stop()) throw DrawsStopped();
  };
  std::size_t answered = 0;
  const auto done = [&](std::size_t i, const WorkerOutcome<std::vector<double>>& said) {
    if (said.no_memory) throw DrawsStopped();  // so would others: what is drawn folds less
    if (!said.answer) throw std::runtime_error(said.error);
    answers[i] = *said.answer;
    if (search.progress) search.progress(++answered, count);
    stop_if_told();
  };
  try {
    outcomes_in_workers(count, search.workers, task, done, stop_if_told);
  } catch (const DrawsStopped&) {  // the workers have ended
  }
  DrawnPlans drawn{0, std::vector<std::vector<double>>(plans.size()),
                   std::vector<std::vector<double>>(plans.size())};
  for (; drawn.draws < search.samples; ++drawn.draws) {
    const auto first = answers.begin() + static_cast<std::ptrdiff_t>(drawn.draws * plans.size());
    const std::span row(first, plans.size());
    if (holds(row, std::vector<double>{})) break;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      drawn.times[i].push_back(row[i][0]);
      drawn.goals[i].push_back(row[i][1]);
    }
  }
  return drawn;
}

void add_ranges(std::vector<FoundPlan>& best, const DrawnPlans& drawn) {
  const std::uint32_t draws = drawn.draws;
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    std::size_t first = 0;
    for (std::size_t i = 1; i < best.size(); ++i)
      if (drawn.goals[i][draw] < drawn.goals[first][draw]) first = i;
    best[first].first += 1.0 / draws;
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    const double stated = best[i].outcome.of("step_time").value_or(0);
    std::vector<double> finite{stated};
    for (const double time : drawn.times[i])
      if (time < unreached) finite.push_back(time);
    if (draws > 0) best[i].fits = static_cast<double>(finite.size() - 1) / draws;
    best[i].step_time = range_of(std::move(finite), stated);
  }
}

// The constant that goes with the ratio of the two most, and that ratio at either end of it.
void find_mover(Turning& turning, const PlanSpace& space, const PlanSearch& search,
                const std::array<std::size_t, 2>& plans, const DrawnPlans& drawn) {
  std::vector<NamedConstant> constants;
  std::array<std::vector<NamedConstant>, 2> own;  // of each plan
  for (std::size_t i = 0; i < plans.size(); ++i) {
    own[i] = load_scenario(search.data, space.sweep.scenario,
                           settings_of(space.sweep, space.points[plans[i]]))
                 .constants;
    add_uncertain(constants, own[i]);
  }
  std::vector<double> ratios;
  std::vector<Draw> draws;
  for (std::uint32_t draw = 0; draw < drawn.draws; ++draw) {
    const double first = drawn.goals[0][draw], second = drawn.goals[1][draw];
    if (first == unreached || second == unreached) continue;
    ratios.push_back(second / first);
    draws.push_back(draw_number(draw, 1));
  }
  const auto telling = telling_constants(constants, ratios, draws, 1);
  if (telling.empty()) return;
  const NamedConstant& constant = telling.front();
  Tasks<double> tasks;
  for (const RangeEnd end : {RangeEnd::low, RangeEnd::high})
    for (std::size_t i = 0; i < plans.size(); ++i)
      tasks.emplace_back([&, end, i] {
        std::vector<Setting> settings = settings_of(space.sweep, space.points[plans[i]]);
        if (auto at_end = setting_at(own[i], constant.name, end))
          settings.push_back(*std::move(at_end));
        return goal_of(evaluate(search.data, space.sweep.scenario, settings), search.goal);
      });
  const std::vector<double> at = in_workers(tasks, search.workers);
  if (std::ranges::any_of(at, [](double goal) { return goal == unreached; })) return;
  const double low = at[1] / at[0], high = at[3] / at[2];
  turning.by = Mover{constant, low, high};
  if ((low - 1) * (high - 1) < 0)
    turning.at = constant.low + (constant.high - constant.low) * (1 - low) / (high - low);
}

Turning turning_of(const PlanSpace& space, const PlanSearch& search,
                   const std::function<bool()>& stop, const PlanAnswer& answer,
                   const DrawnPlans& drawn) {
  Turning turning;
  if (search.goal != PlanGoal::memory)
    std::tie(turning.cause, turning.lost) =
        most_lost(answer.best[0].outcome, answer.best[1].outcome);
  turning.draws = drawn.draws;
  for (std::size_t draw = 0; draw < drawn.draws; ++draw)
    if (drawn.goals[1][draw] < drawn.goals[0][draw]) ++turning.won;
  if (drawn.draws >= draws_at_once && !stop())
    find_mover(turning, space, search, {answer.best[0].plan, answer.best[1].plan}, drawn);
  return turning;
}

}  // namespace

void add_draws(const PlanSpace& space, const PlanSearch& search, const std::function<bool()>& stop,
               PlanAnswer& answer) {
  const DrawnPlans drawn = drawn_of(space, search, stop, mapped(answer.best, &FoundPlan::plan));
  answer.draws = drawn.draws;
  add_ranges(answer.best, drawn);
  if (answer.best.size() > 1 && drawn.draws > 0)
    answer.second = turning_of(space, search, stop, answer, drawn);
}

}  // namespace stepsim
