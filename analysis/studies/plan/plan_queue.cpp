#include "analysis/studies/plan/plan_queue.hpp"

#include <algorithm>

#include "analysis/studies/predict/replayed_step.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

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
    case PlanGoal::energy: {  // whatever runs, its ranks stand for so long
      const auto power = power_of(space.kinds[plan.kind].scenario.cluster);
      return power ? power->standing() * least.time.value * gpus_of(space, plan) : 0;
    }
    case PlanGoal::memory:
      break;
  }
  return least.bytes;
}

}  // namespace

PlanBounds::PlanBounds(const PlanSpace& space) : space_(space), all_(space.plans.size()) {}

void PlanBounds::find(std::span<const std::size_t> plans, std::size_t workers,
                      const std::function<bool()>& stop) {
  if (space_.asked.grpo) {
    for (const std::size_t plan : plans)
      all_[plan].bytes = space_.kinds[space_.plans[plan].kind].fits ? 0 : unreached;
    return;
  }
  constexpr std::size_t at_once = 512;  // in a worker
  const auto some = [&](std::size_t chunk) {
    return plans.subspan(chunk * at_once, std::min(at_once, plans.size() - chunk * at_once));
  };
  const auto bounds_of = [&](std::size_t chunk) {
    std::vector<double> bounds;
    bounds.reserve(3 * at_once);
    for (const std::size_t plan : some(chunk)) {
      const JobPlan& which = space_.plans[plan];
      const LeastStep least = of(which).of(input_of(space_, which));
      append(bounds, {least.time.value, least.bytes, least.operations});
    }
    return bounds;
  };
  const auto keep = [&](std::size_t chunk, const std::vector<double>& bounds) {
    const auto which = some(chunk);
    for (std::size_t i = 0; i < which.size(); ++i)
      all_[which[i]] = {Seconds{bounds[3 * i]}, bounds[3 * i + 1], bounds[3 * i + 2]};
  };
  const std::size_t chunks = (plans.size() + at_once - 1) / at_once;
  if (chunks == 1) return keep(0, bounds_of(0));
  struct Stopped {};
  try {
    in_workers(chunks, workers, bounds_of, [&](std::size_t chunk, const auto& bounds) {
      keep(chunk, bounds);
      if (stop()) throw Stopped();
    });
  } catch (const Stopped&) {  // the workers have ended
  }
}

std::optional<std::size_t> PlanBounds::smallest() const {
  const auto least = std::ranges::min_element(all_, {}, &LeastStep::bytes);
  if (least == all_.end()) return std::nullopt;
  return static_cast<std::size_t>(least - all_.begin());
}

void PlanBounds::look_closer(std::size_t plan) {
  const JobPlan& which = space_.plans[plan];
  if (space_.asked.grpo) return;
  all_[plan].time = std::max(all_[plan].time, of(which).in_turns(input_of(space_, which)));
}

double PlanBounds::cost(std::size_t plan) const {
  if (space_.asked.grpo) return 0;
  return all_[plan].operations *
         static_cast<double>(micro_batches_written(input_of(space_, space_.plans[plan])));
}

LeastSteps& PlanBounds::of(const JobPlan& plan) {
  const Cluster& cluster = space_.kinds[plan.kind].scenario.cluster;
  return clusters_.try_emplace(cluster.nodes, cluster).first->second;
}

PlanQueue::PlanQueue(const PlanSpace& space, PlanBounds& bounds, const PlanSearch& search,
                     double share, std::span<const std::size_t> plans)
    : space_(space), goal_(search.goal), bounds_(bounds) {
  const bool rough = search.prune && goal_ != PlanGoal::memory;
  for (const std::size_t plan : plans)
    if (!search.prune || bounds_[plan].bytes <= share * capacity_of(space, space.plans[plan]))
      queue_.insert({search.prune ? least_of(plan) : 0, plan, rough});
}

std::optional<double> PlanQueue::least() const {
  return queue_.empty() ? std::nullopt : std::optional(queue_.begin()->least);
}

std::size_t PlanQueue::left_to(double goal) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(queue_, [&](const Entry& each) { return each.least <= goal; }));
}

std::optional<std::size_t> PlanQueue::next() {
  const Entry entry = *queue_.begin();
  queue_.erase(queue_.begin());
  if (!entry.rough) return entry.plan;
  bounds_.look_closer(entry.plan);
  queue_.insert({least_of(entry.plan), entry.plan, false});
  return std::nullopt;
}

void PlanQueue::put_back(std::size_t plan) {
  queue_.insert({least_of(plan), plan, false});
}

bool PlanQueue::drop(std::size_t plan) {
  return std::erase_if(queue_, [&](const Entry& each) { return each.plan == plan; }) > 0;
}

double PlanQueue::least_of(std::size_t plan) const {
  return least_goal(space_, space_.plans[plan], bounds_[plan], goal_);
}

}  // namespace stepsim
