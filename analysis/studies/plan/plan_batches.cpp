#include "analysis/studies/plan/plan_batches.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_batches = 4;

}  // namespace

std::vector<std::int64_t> batches_beside(std::int64_t rows, std::int64_t gpus, bool only_whole) {
  const auto far = static_cast<std::int64_t>(batch_nearby * static_cast<double>(rows));
  const std::int64_t own = std::gcd(rows, gpus);
  std::vector<std::int64_t> beside;
  for (std::int64_t away = 1; away <= far; ++away)
    for (const std::int64_t other : {rows - away, rows + away})
      if (const std::int64_t shared = std::gcd(other, gpus);
          shared > own && (!only_whole || shared == gpus))
        beside.push_back(other);
  std::ranges::stable_sort(beside, std::greater{},
                           [&](std::int64_t other) { return std::gcd(other, gpus); });
  std::vector<std::int64_t> picked;  // of each side and number of divisors the nearest
  for (const std::int64_t other : beside)
    if (picked.size() < most_batches && std::ranges::none_of(picked, [&](std::int64_t before) {
          return (before < rows) == (other < rows) &&
                 std::gcd(before, gpus) == std::gcd(other, gpus);
        }))
      picked.push_back(other);
  return picked;
}

std::vector<OtherBatch> better_batches(const PlanQuestion& question, const PlanSpace& space,
                                       const PlanSearch& search, const PlanAnswer& answer,
                                       bool only_whole) {
  std::vector<OtherBatch> better;
  if (space.asked.grpo || answer.best.empty() || search.goal == PlanGoal::memory ||
      !question.nodes.empty())
    return better;
  const double own =
      goal_of(answer.best.front().outcome, search.goal) / static_cast<double>(space.batch);
  PlanSearch one = search;
  one.top = 1;
  one.samples = 0;
  one.journal.clear();
  for (const std::int64_t rows :
       batches_beside(space.batch, space.asked.cluster.ranks(), only_whole)) {
    PlanQuestion other = question;
    other.batch = rows;
    try {
      const PlanSpace wider = plan_space(other);
      const PlanAnswer found = search_plans(wider, one);
      if (found.best.empty()) continue;
      const FoundPlan& best = found.best.front();
      const double gain = own * static_cast<double>(rows) / goal_of(best.outcome, search.goal) - 1;
      if (gain > 0)
        better.push_back({rows, plan_text(wider, wider.plans[best.plan]), best.outcome, gain});
    } catch (const UserError&) {  // nothing comes out even
    }
  }
  std::ranges::stable_sort(better, std::greater{}, &OtherBatch::gain);
  return better;
}

}  // namespace stepsim
