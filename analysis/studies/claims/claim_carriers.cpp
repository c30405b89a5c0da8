#include "analysis/studies/claims/claim_carriers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

struct Moved {
  NamedConstant constant;
  std::vector<double> steps;  // [scenario]: share of the step's time
};

double spread(const Moved& moved, std::size_t scenarios) {
  double low = 0, high = 0;  // a scenario without the constant stays
  const bool all = moved.steps.size() == scenarios;
  for (std::size_t i = 0; i < moved.steps.size(); ++i) {
    low = i == 0 && all ? moved.steps[i] : std::min(low, moved.steps[i]);
    high = i == 0 && all ? moved.steps[i] : std::max(high, moved.steps[i]);
  }
  return scenarios > 1 ? high - low : std::max(high, -low);
}

void add(std::vector<Moved>& all, const ByCause<std::vector<Carrier>>& carriers,
         const PointFacts& facts) {
  std::map<std::string, std::pair<NamedConstant, double>> sums;
  const double step = facts.of("step_time").value_or(0);
  if (step <= 0) return;
  for (std::size_t cause = 0; cause < cause_count; ++cause) {
    const double share = facts.of(fmt::format("time.{}", cause_names[cause])).value_or(0) / step;
    for (const Carrier& each : carriers[cause]) {
      const NamedConstant& c = each.constant;
      auto& sum = sums.try_emplace(c.name, c, 0.0).first->second;
      if (c.value != 0) sum.second += share * each.weight * (c.high - c.low) / c.value;
    }
  }
  for (const auto& [name, sum] : sums) {
    const auto place = std::ranges::find_if(
        all, [&, &key = name](const Moved& moved) { return moved.constant.name == key; });
    if (place == all.end())
      all.push_back({sum.first, {sum.second}});
    else
      place->steps.push_back(sum.second);
  }
}

}  // namespace

const ByCause<std::vector<Carrier>>& ClaimCarriers::of_scenario(const ClaimScenario& scenario) {
  std::string key = scenario.source;
  for (const auto& [name, value] : scenario.settings) key += fmt::format("\n{}={}", name, value);
  const auto place = known_.find(key);
  if (place != known_.end()) return place->second;
  return known_[key] = carriers_of(data_, scenario.source, scenario.settings);
}

std::vector<NamedConstant> ClaimCarriers::of(const Claim& claim, ClaimPoints& points) {
  std::vector<Moved> all;
  std::size_t scenarios = 0;
  for (std::size_t i = 0; i < claim.scenarios.size(); ++i) {
    const ClaimScenario& scenario = claim.scenarios[i];
    // A scenario that only others are made of is not replayed, and a GRPO job is many programs:
    // neither is looked into.
    const PointFacts* facts = facts_of(claim, i, nullptr, points);
    if (facts == nullptr) continue;
    const AllowedScenario found = allowed_scenario(data_, scenario.source, scenario.settings);
    if (!found.scenario || found.scenario->grpo) continue;
    ++scenarios;
    add(all, of_scenario(scenario), *facts);
  }
  points.forget_wanted();
  std::ranges::stable_sort(all, [&](const Moved& a, const Moved& b) {
    return spread(a, scenarios) > spread(b, scenarios);
  });
  return mapped(all, &Moved::constant);
}

}  // namespace stepsim
