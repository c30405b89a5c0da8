#include "analysis/studies/plan/plan_search.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <set>

#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/sweep/sweep.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t replays_at_once = 8;  // whatever the machine, so that the answer is the same
constexpr double unreached = std::numeric_limits<double>::infinity();

double capacity_of(const PlanSpace& space, const JobPlan& plan) {
  return space.kinds[plan.kind].scenario.cluster.gpu.memory.usable.value.value;
}

bool is_tight(const Outcome& outcome, double share) {
  const auto peak = outcome.of("peak_memory"), capacity = outcome.of("memory_capacity");
  return outcome.feasible && peak && capacity && *peak > share * *capacity;
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
    case PlanGoal::energy: {  // whatever runs, its ranks stand for so long
      const auto power = power_of(space.kinds[plan.kind].scenario.cluster);
      return power ? power->standing() * least.time.value * gpus_of(space, plan) : 0;
    }
    case PlanGoal::memory:
      break;
  }
  return least.bytes;
}

// Bounds of a GRPO job's plans say no more before they are replayed than whether they can fit.
class Bounds {
 public:
  explicit Bounds(const PlanSpace& space) : space_(space) {
    for (const JobPlan& plan : space.plans)
      all_.push_back(!space.asked.grpo             ? of(plan).of(input_of(space, plan))
                     : space.kinds[plan.kind].fits ? LeastStep{}
                                                   : LeastStep{{}, unreached});
  }

  const LeastStep& operator[](std::size_t plan) const { return all_[plan]; }
  // Returns the plan with the least memory.
  std::optional<std::size_t> smallest() const {
    const auto least = std::ranges::min_element(all_, {}, &LeastStep::bytes);
    if (least == all_.end()) return std::nullopt;
    return static_cast<std::size_t>(least - all_.begin());
  }
  void look_closer(std::size_t plan) {
    const JobPlan& which = space_.plans[plan];
    if (space_.asked.grpo) return;
    all_[plan].time = std::max(all_[plan].time, of(which).in_turns(input_of(space_, which)));
  }

 private:
  LeastSteps& of(const JobPlan& plan) {
    const Cluster& cluster = space_.kinds[plan.kind].scenario.cluster;
    return clusters_.try_emplace(cluster.nodes, cluster).first->second;
  }

  const PlanSpace& space_;
  std::map<std::uint32_t, LeastSteps> clusters_;  // by the number of nodes
  std::vector<LeastStep> all_;
};

// This keeps the best so far, best first. Of plans that come to the same it keeps the one that
// stands first in the space.
class Best {
 public:
  Best(PlanGoal goal, std::size_t most, double share) : goal_(goal), most_(most), share_(share) {}

  void add(std::size_t plan, const Outcome& outcome) {
    if (!outcome.feasible || is_tight(outcome, share_)) return;
    const auto [place, added] =
        all_.try_emplace({goal_of(outcome, goal_), outcome.of("step_time").value_or(unreached),
                          outcome.of("peak_memory").value_or(unreached)},
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
  double share_;
  std::map<std::array<double, 3>, std::size_t> all_;
};

// These are the plans' figures under the same draws, [plan][draw]; `unreached`: it does not fit
// then.
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
        if (!outcome.feasible) return std::vector{unreached, unreached};
        return std::vector{outcome.of("step_time").value_or(unreached),
                           goal_of(outcome, search.goal)};
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
      if (time < unreached) finite.push_back(time);
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
  std::array<std::vector<NamedConstant>, 2> own;  // of each plan
  for (std::size_t i = 0; i < plans.size(); ++i) {
    own[i] = load_scenario(search.data, space.sweep.scenario,
                           settings_of(space.sweep, space.points[plans[i]]))
                 .constants;
    add_uncertain(constants, own[i]);
  }
  std::vector<double> ratios;
  std::vector<Draw> draws;
  for (std::uint32_t draw = 0; draw < search.samples; ++draw) {
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

// Plans that may fit, best bound first; of equal ones that which stands first in the space.
class Waiting {
 public:
  Waiting(const PlanSpace& space, PlanGoal goal, bool prune, double share)
      : space_(space), goal_(goal), bounds_(space) {
    const bool rough = prune && goal != PlanGoal::memory;
    for (std::size_t plan = 0; plan < space.plans.size(); ++plan)
      if (!prune || bounds_[plan].bytes <= share * capacity_of(space, space.plans[plan]))
        queue_.insert({prune ? least_of(plan) : 0, plan, rough});
  }

  const Bounds& bounds() const { return bounds_; }
  // No plan that is left comes below.
  std::optional<double> least() const {
    return queue_.empty() ? std::nullopt : std::optional(queue_.begin()->least);
  }
  std::size_t left() const { return queue_.size(); }
  // The next plan, unless a closer look has shown that others may come before it.
  std::optional<std::size_t> next() {
    Entry entry = *queue_.begin();
    queue_.erase(queue_.begin());
    if (!entry.rough) return entry.plan;
    bounds_.look_closer(entry.plan);
    queue_.insert({least_of(entry.plan), entry.plan, false});
    return std::nullopt;
  }

 private:
  struct Entry {
    double least = 0;
    std::size_t plan = 0;
    bool rough = false;
    auto operator<=>(const Entry&) const = default;
  };

  double least_of(std::size_t plan) const {
    return least_goal(space_, space_.plans[plan], bounds_[plan], goal_);
  }

  const PlanSpace& space_;
  PlanGoal goal_;
  Bounds bounds_;
  std::set<Entry> queue_;
};

}  // namespace

double goal_of(const Outcome& outcome, PlanGoal goal) {
  if (goal == PlanGoal::memory) return outcome.of("peak_memory").value_or(unreached);
  if (goal == PlanGoal::energy) return outcome.of("energy").value_or(unreached);
  const double time = outcome.of("step_time").value_or(unreached);
  return goal == PlanGoal::time ? time : time * outcome.of("gpus").value_or(1);
}

PlanAnswer search_plans(const PlanSpace& space, const PlanSearch& search) {
  PlanAnswer answer;
  answer.plans = space.plans.size();
  const double share = 1 - search.free;
  Waiting waiting(space, search.goal, search.prune, share);
  const Bounds& bounds = waiting.bounds();
  SweepQuestion question{.data = search.data,
                         .plan = space.sweep,
                         .shard = {},
                         .journal = search.journal,
                         .workers = search.workers,
                         .progress = search.progress};
  SweepRun run(std::move(question), space.points,
               {space.asked.files.begin(), space.asked.files.end()});
  Best best(search.goal, search.top, share);
  std::vector<std::size_t> batch;
  const auto replay = [&] {
    run.answer(batch);
    for (const std::size_t plan : batch) {
      best.add(plan, run.outcome(plan));
      answer.failed += run.outcome(plan).feasible ? 0 : 1;
      answer.tight += is_tight(run.outcome(plan), share) ? 1 : 0;
      answer.replays.push_back(plan);
    }
    batch.clear();
  };
  answer.too_large = space.plans.size() - waiting.left();
  while (const std::optional<double> least = waiting.least()) {
    if (search.prune && !best.may_beat(*least)) break;
    const std::optional<std::size_t> plan = waiting.next();
    if (!plan) continue;
    batch.push_back(*plan);
    if (batch.size() == replays_at_once) replay();
  }
  replay();
  answer.replayed = answer.replays.size();
  answer.too_slow = space.plans.size() - answer.too_large - answer.replayed;
  std::ranges::sort(answer.replays);
  answer.table = run.table(answer.replays);
  answer.table.title = space.asked.name;
  const std::vector<std::size_t> plans = best.plans();
  for (const std::size_t plan : plans)
    answer.best.push_back({plan, bounds[plan], run.outcome(plan), {}, 1, 0});
  if (answer.best.empty()) {
    if (!space.asked.grpo) answer.smallest = bounds.smallest();
    if (answer.smallest) answer.smallest_bytes = bounds[*answer.smallest].bytes;
    return answer;
  }
  const DrawnPlans drawn = drawn_of(space, search, plans);
  add_ranges(answer.best, drawn, search.samples);
  if (answer.best.size() > 1 && search.samples > 0)
    answer.second = turning_of(space, search, answer, drawn);
  return answer;
}

}  // namespace stepsim
