#include "analysis/studies/shapley.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace stepsim {
namespace {

using Order = std::vector<std::uint8_t>;

// The same sequence on every machine; the library's shuffles are not.
struct Sequence {
  std::uint64_t state;

  std::uint64_t next() {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  Order order(std::size_t players) {
    Order order(players);
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    for (std::size_t left = players; left > 1; --left)
      std::swap(order[left - 1], order[next() % left]);
    return order;
  }
};

// How often a coalition of `size` of `players` is what one player finds: size! (n - size - 1)! / n!
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

}  // namespace

ShapleyPlan plan_shapley(std::size_t players, std::size_t most, std::uint64_t seed,
                         std::size_t fewest) {
  ShapleyPlan plan;
  plan.players = players;
  if (const std::size_t all = std::size_t{1} << players; all <= most || players < 2) {
    plan.coalitions.resize(all);
    std::iota(plan.coalitions.begin(), plan.coalitions.end(), Coalition{0});
    return plan;
  }
  Sequence sequence{seed};
  std::set<Coalition> known;
  const auto add = [&](const Order& order) {
    Coalition joined = 0;
    known.insert(joined);
    for (const std::uint8_t player : order) known.insert(joined |= Coalition{1} << player);
    plan.orders.push_back(order);
  };
  while (plan.orders.size() < 2 * fewest || known.size() + 2 * players <= most) {
    Order order = sequence.order(players);
    add(order);
    std::reverse(order.begin(), order.end());
    add(order);
  }
  plan.coalitions.assign(known.begin(), known.end());
  return plan;
}

std::vector<ShapleyValue> shapley_values(const ShapleyPlan& plan, std::span<const double> worth) {
  if (plan.exact()) return exact_values(plan.players, worth);
  const auto worth_of = [&](Coalition coalition) {
    const auto place = std::lower_bound(plan.coalitions.begin(), plan.coalitions.end(), coalition);
    return worth[static_cast<std::size_t>(place - plan.coalitions.begin())];
  };
  std::vector<ShapleyValue> values(plan.players);
  std::vector<double> squares(plan.players, 0);
  const double pairs = static_cast<double>(plan.orders.size()) / 2;
  for (std::size_t i = 0; i < plan.orders.size(); i += 2) {
    std::vector<double> mean(plan.players, 0);  // of an order and its reverse
    for (const std::size_t which : {i, i + 1}) {
      Coalition joined = 0;
      for (const std::uint8_t player : plan.orders[which]) {
        const double before = worth_of(joined);
        joined |= Coalition{1} << player;
        mean[player] += (worth_of(joined) - before) / 2;
      }
    }
    for (std::size_t player = 0; player < plan.players; ++player) {
      values[player].value += mean[player] / pairs;
      squares[player] += mean[player] * mean[player];
    }
  }
  for (std::size_t player = 0; player < plan.players; ++player) {
    if (pairs < 2) continue;
    const double spread =
        std::max(0.0, squares[player] - pairs * values[player].value * values[player].value);
    values[player].standard_error = std::sqrt(spread / (pairs - 1) / pairs);
  }
  return values;
}

}  // namespace stepsim
