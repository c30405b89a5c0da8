#include "analysis/studies/explain/shapley.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using Order = std::vector<std::uint8_t>;

// This many coalitions are asked before the errors of drawn orders are looked at.
constexpr std::size_t first_coalitions = 64;

// This gives the same sequence on every machine; the library's shuffles do not.
struct RandomSequence {
  std::uint64_t state;

  std::uint64_t next() {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  // Draws an order in which players join; a plan is made of such orders and their reverses.
  Order order(std::size_t players) {
    Order order(players);
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    for (std::size_t left = players; left > 1; --left)
      std::swap(order[left - 1], order[next() % left]);
    return order;
  }
};

// Returns how often a coalition of `size` of `players` is what one player finds: size! (n - size -
// 1)! / n!
std::vector<double> weights_of(std::size_t players) {
  std::vector<double> weights(players);
  double choose = 1;
  for (std::size_t size = 0; size < players; ++size) {
    weights[size] = 1 / (static_cast<double>(players) * choose);
    choose *= static_cast<double>(players - 1 - size) / static_cast<double>(size + 1);
  }
  return weights;
}

std::vector<ShapleyValue> exact_values(std::size_t players, std::span<const double> worth) {
  const std::vector<double> weights = weights_of(players);
  std::vector<ShapleyValue> values(players);
  for (std::size_t coalition = 0; coalition < worth.size(); ++coalition)
    for (std::size_t player = 0; player < players; ++player)
      if ((coalition >> player & 1) == 0)
        values[player].value += weights[static_cast<std::size_t>(std::popcount(coalition))] *
                                (worth[coalition | std::size_t{1} << player] - worth[coalition]);
  return values;
}

// Adds an order and its reverse.
void add_pair(ShapleyPlan& plan, std::set<Coalition>& known, Order order) {
  for (int i = 0; i < 2; ++i) {
    Coalition joined = 0;
    known.insert(joined);
    for (const std::uint8_t player : order) known.insert(joined |= Coalition{1} << player);
    plan.orders.push_back(order);
    std::reverse(order.begin(), order.end());
  }
}

}  // namespace

ShapleyPlan plan_shapley(std::size_t players, std::size_t most, std::uint64_t seed) {
  ShapleyPlan plan;
  plan.players = players;
  if (const std::size_t all = std::size_t{1} << players; all <= most || players < 2) {
    plan.coalitions.resize(all);
    std::iota(plan.coalitions.begin(), plan.coalitions.end(), Coalition{0});
    return plan;
  }
  RandomSequence sequence{seed};
  std::set<Coalition> known;
  constexpr std::size_t fewest_orders = 4;
  while (plan.orders.size() < fewest_orders || known.size() + 2 * players <= most)
    add_pair(plan, known, sequence.order(players));
  plan.coalitions.assign(known.begin(), known.end());
  return plan;
}

ShapleyPlan plan_pair(std::size_t players, std::uint64_t seed, std::size_t number) {
  ShapleyPlan plan;
  plan.players = players;
  RandomSequence sequence{seed};
  for (std::size_t i = 0; i < number; ++i) sequence.order(players);
  std::set<Coalition> known;
  add_pair(plan, known, sequence.order(players));
  plan.coalitions.assign(known.begin(), known.end());
  return plan;
}

std::vector<std::vector<double>> pair_values(const ShapleyPlan& plan,
                                             std::span<const double> worth) {
  const auto worth_of = [&](Coalition coalition) {
    const auto place = std::lower_bound(plan.coalitions.begin(), plan.coalitions.end(), coalition);
    return worth[static_cast<std::size_t>(place - plan.coalitions.begin())];
  };
  std::vector<std::vector<double>> pairs;
  for (std::size_t i = 0; i < plan.orders.size(); ++i) {
    if (i % 2 == 0) pairs.emplace_back(plan.players, 0);  // an order, then its reverse
    Coalition joined = 0;
    for (const std::uint8_t player : plan.orders[i]) {
      const double before = worth_of(joined);
      joined |= Coalition{1} << player;
      pairs.back()[player] += (worth_of(joined) - before) / 2;
    }
  }
  return pairs;
}

double standard_error(std::span<const double> figures) {
  if (figures.size() < 2) return 0;
  const double n = static_cast<double>(figures.size());
  const double mean = std::accumulate(figures.begin(), figures.end(), 0.0) / n;
  double squares = 0;
  for (const double figure : figures) squares += (figure - mean) * (figure - mean);
  return std::sqrt(squares / (n - 1) / n);
}

std::vector<ShapleyValue> shapley_values(const ShapleyPlan& plan, std::span<const double> worth) {
  if (plan.exact()) return exact_values(plan.players, worth);
  const std::vector<std::vector<double>> pairs = pair_values(plan, worth);
  std::vector<ShapleyValue> values(plan.players);
  for (std::size_t player = 0; player < plan.players; ++player) {
    std::vector<double> own =
        mapped(pairs, [&](const std::vector<double>& pair) { return pair[player]; });
    for (const double value : own) values[player].value += value / static_cast<double>(own.size());
    values[player].standard_error = standard_error(own);
  }
  return values;
}

ShapleyStudy study_plan(ShapleyPlan plan, const CoalitionWorth& worth_of) {
  std::vector<ShapleyValue> values = shapley_values(plan, worth_of(plan));
  return {std::move(plan), std::move(values)};
}

ShapleyStudy study_shapley(std::size_t players, std::size_t most, double precise,
                           std::uint64_t seed, const CoalitionWorth& worth_of) {
  const bool at_once = precise <= 0 || std::size_t{1} << players <= most;
  for (std::size_t now = at_once ? most : std::min(most, first_coalitions);;
       now = std::min(most, 2 * now)) {
    ShapleyStudy study = study_plan(plan_shapley(players, now, seed), worth_of);
    if (study.plan.exact() || now >= most ||
        std::ranges::all_of(
            study.values, [&](const ShapleyValue& each) { return each.standard_error <= precise; }))
      return study;
  }
}

}  // namespace stepsim
