#include "analysis/studies/plan/plan_search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/sweep/sweep.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t replays_at_once = 8;  // whatever the machine, so that the answer is the same
constexpr double never = std::numeric_limits<double>::infinity();

double capacity_of(const PlanSpace& space, const JobPlan& plan) {
  return space.kinds[plan.kind].scenario.cluster.gpu.memory.usable.value.value;
}

double gpus_of(const PlanSpace& space, const JobPlan& plan) {
  return space.kinds[plan.kind].scenario.cluster.ranks();
}

// No outcome of the plan is below.
double least_goal(const PlanSpace& space, const JobPlan& plan, const LeastStep& least,
                  PlanGoal goal) {
  switch (goal) {
    case PlanGoal::time:
      return least.time.value;
    case PlanGoal::cost:
      return least.time.value * gpus_of(space, plan);
    case PlanGoal::memory:
      break;
  }
  return least.bytes;
}

std::vector<LeastStep> bounds_of(const PlanSpace& space) {
  if (space.asked.grpo) return std::vector<LeastStep>(space.plans.size());  // all are replayed
  std::map<std::uint32_t, LeastSteps> clusters;  // by the number of nodes
  std::vector<LeastStep> bounds;
  for (const JobPlan& plan : space.plans) {
    const Cluster& cluster = space.kinds[plan.kind].scenario.cluster;
    bounds.push_back(
        clusters.try_emplace(cluster.nodes, cluster).first->second.of(input_of(space, plan)));
  }
  return bounds;
}

// The best so far, best first. Of plans that come to the same the one that stands first in the
// space.
class Best {
 public:
  Best(PlanGoal goal, std::size_t most) : goal_(goal), most_(most) {}

  void add(std::size_t plan, const Outcome& outcome) {
    if (!outcome.feasible) return;
    const auto [place, added] =
        all_.try_emplace({goal_of(outcome, goal_), outcome.of("step_time").value_or(never),
                          outcome.of("peak_memory").value_or(never)},
                         plan);
    place->second = std::min(place->second, plan);
    if (all_.size() > most_) all_.erase(std::prev(all_.end()));
  }
  bool may_beat(double least) const {
    return all_.size() < most_ || least <= std::prev(all_.end())->first.front();
  }
  std::vector<std::size_t> plans() const {
    return mapped(all_, [](const auto& each) { return each.second; });
  }

 private:
  PlanGoal goal_;
  std::size_t most_;
  std::map<std::array<double, 3>, std::size_t> all_;
};

// Of the plans under the same draws, [plan][draw]; never: it does not fit then.
struct DrawnPlans {
  std::vector<std::vector<double>> times;
  std::vector<std::vector<double>> goals;  // what is to be least
};

DrawnPlans drawn_of(const PlanSpace& space, const PlanSearch& search,
                    const std::vector<std::size_t>& plans) {
  Tasks<std::vector<double>> tasks;
  for (const std::size_t plan : plans)
    for (std::uint32_t draw = 0; draw < search.samples; ++draw)
      tasks.emplace_back([&, plan, draw] {
        const Outcome outcome =
            evaluate(search.data, space.sweep.scenario,
                     settings_of(space.sweep, space.points[plan]), draw_number(draw, 1));
        if (!outcome.feasible) return std::vector{never, never};
        return std::vector{outcome.of("step_time").value_or(never), goal_of(outcome, search.goal)};
      });
  const auto answers = in_workers(tasks, search.workers, search.progress);
  DrawnPlans drawn{std::vector<std::vector<double>>(plans.size()),
                   std::vector<std::vector<double>>(plans.size())};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    drawn.times[i / search.samples].push_back(answers[i][0]);
    drawn.goals[i / search.samples].push_back(answers[i][1]);
  }
  return drawn;
}

void add_ranges(std::vector<FoundPlan>& best, const DrawnPlans& drawn, std::uint32_t draws) {
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
      if (time < never) finite.push_back(time);
    if (draws > 0) best[i].fits = static_cast<double>(finite.size() - 1) / draws;
    best[i].step_time = range_of(std::move(finite), stated);
  }
}

void find_cause(Turning& turning, const Outcome& first, const Outcome& second) {
  constexpr std::string_view group = "time.";
  double most = 0;
  for (const NamedMetric& metric : all_metrics()) {
    if (!metric.name.starts_with(group)) continue;
    const double more = second.of(metric.name).value_or(0) - first.of(metric.name).value_or(0);
    if (more <= most) continue;
    most = more;
    turning.cause = metric.name.substr(group.size());
    turning.lost = {more};
  }
}

// The constant that goes with the ratio of the two most, and that ratio at either end of it.
void find_mover(Turning& turning, const PlanSpace& space, const PlanSearch& search,
                const std::array<std::size_t, 2>& plans, const DrawnPlans& drawn) {
  std::vector<NamedConstant> constants;
  for (const std::size_t plan : plans)
    add_uncertain(constants, load_scenario(search.data, space.sweep.scenario,
                                           settings_of(space.sweep, space.points[plan]))
                                 .constants);
  std::vector<double> ratios;
  std::vector<Draw> draws;
  for (std::uint32_t draw = 0; draw < search.samples; ++draw) {
    const double first = drawn.goals[0][draw], second = drawn.goals[1][draw];
    if (first == never || second == never) continue;
    ratios.push_back(second / first);
    draws.push_back(draw_number(draw, 1));
  }
  const auto telling = telling_constants(constants, ratios, draws, 1);
  if (telling.empty()) return;
  const NamedConstant& constant = telling.front();
  Tasks<double> tasks;
  for (const double value : {constant.low, constant.high})
    for (const std::size_t plan : plans)
      tasks.emplace_back([&, value, plan] {
        std::vector<Setting> settings = settings_of(space.sweep, space.points[plan]);
        settings.push_back(setting_of(constant, value));
        return goal_of(evaluate(search.data, space.sweep.scenario, settings), search.goal);
      });
  const std::vector<double> at = in_workers(tasks, search.workers);
  if (std::ranges::any_of(at, [](double goal) { return goal == never; })) return;
  const double low = at[1] / at[0], high = at[3] / at[2];
  turning.by = Mover{constant, low, high};
  if ((low - 1) * (high - 1) < 0)
    turning.at = constant.low + (constant.high - constant.low) * (1 - low) / (high - low);
}

Turning turning_of(const PlanSpace& space, const PlanSearch& search, const PlanAnswer& answer,
                   const DrawnPlans& drawn) {
  Turning turning;
  if (search.goal != PlanGoal::memory)
    find_cause(turning, answer.best[0].outcome, answer.best[1].outcome);
  turning.draws = search.samples;
  for (std::size_t draw = 0; draw < search.samples; ++draw)
    if (drawn.goals[1][draw] < drawn.goals[0][draw]) ++turning.won;
  if (search.samples >= draws_at_once)
    find_mover(turning, space, search, {answer.best[0].plan, answer.best[1].plan}, drawn);
  return turning;
}

// Best bound first.
std::vector<std::size_t> in_order(const PlanSpace& space, const PlanSearch& search,
                                  const std::vector<LeastStep>& bounds) {
  std::vector<double> least;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    least.push_back(least_goal(space, space.plans[i], bounds[i], search.goal));
  std::vector<std::size_t> order(bounds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (search.prune)
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return least[a] < least[b]; });
  return order;
}

}  // namespace

double goal_of(const Outcome& outcome, PlanGoal goal) {
  if (goal == PlanGoal::memory) return outcome.of("peak_memory").value_or(never);
  const double time = outcome.of("step_time").value_or(never);
  return goal == PlanGoal::time ? time : time * outcome.of("gpus").value_or(1);
}

PlanAnswer search_plans(const PlanSpace& space, const PlanSearch& search) {
  PlanAnswer answer;
  answer.plans = space.plans.size();
  const std::vector<LeastStep> bounds = bounds_of(space);
  SweepQuestion question{.data = search.data,
                         .plan = space.sweep,
                         .shard = {},
                         .journal = search.journal,
                         .workers = search.workers,
                         .progress = search.progress};
  SweepRun run(std::move(question), space.points,
               {space.asked.files.begin(), space.asked.files.end()});
  Best best(search.goal, search.top);
  std::vector<std::size_t> batch;
  const auto replay = [&] {
    run.answer(batch);
    for (const std::size_t plan : batch) {
      best.add(plan, run.outcome(plan));
      answer.failed += run.outcome(plan).feasible ? 0 : 1;
      answer.replays.push_back(plan);
    }
    batch.clear();
  };
  const std::vector<std::size_t> order = in_order(space, search, bounds);
  for (const std::size_t plan : order) {
    const JobPlan& which = space.plans[plan];
    if (!answer.smallest || bounds[plan].bytes < answer.smallest_bytes) {
      answer.smallest = plan;
      answer.smallest_bytes = bounds[plan].bytes;
    }
    if (search.prune && bounds[plan].bytes > capacity_of(space, which)) {
      ++answer.too_large;
      continue;
    }
    if (search.prune && !best.may_beat(least_goal(space, which, bounds[plan], search.goal))) {
      ++answer.too_slow;
      continue;
    }
    batch.push_back(plan);
    if (batch.size() == replays_at_once) replay();
  }
  replay();
  answer.replayed = answer.replays.size();
  std::ranges::sort(answer.replays);
  answer.table = run.table(answer.replays);
  answer.table.title = space.asked.name;
  const std::vector<std::size_t> plans = best.plans();
  for (const std::size_t plan : plans)
    answer.best.push_back({plan, bounds[plan], run.outcome(plan), {}, 1, 0});
  if (answer.best.empty()) return answer;
  answer.smallest.reset();
  const DrawnPlans drawn = drawn_of(space, search, plans);
  add_ranges(answer.best, drawn, search.samples);
  if (answer.best.size() > 1 && search.samples > 0)
    answer.second = turning_of(space, search, answer, drawn);
  return answer;
}

}  // namespace stepsim
