// Shapley values say what each of several players contributes to a sum that they only reach
// together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace stepsim {

using Coalition = std::uint32_t;  // bit i: player i has joined

struct ShapleyValue {
  double value = 0;
  double standard_error = 0;  // 0: exact
};

// A plan says in which orders the players join. With few players all orders are covered by all
// coalitions, and the values are exact; with more, some orders are drawn, each with its reverse.
struct ShapleyPlan {
  std::size_t players = 0;
  std::vector<std::vector<std::uint8_t>> orders;  // empty: exact
  std::vector<Coalition> coalitions;              // that have to be known, each once, ascending

  bool exact() const { return orders.empty(); }
};

// Exact if there are no more coalitions than `most`; else as many pairs of orders as need no more,
// at least two: of one pair nothing is known of its error. A plan of more has the orders of a
// smaller one, and others behind them.
ShapleyPlan plan_shapley(std::size_t players, std::size_t most, std::uint64_t seed);

// Plans the pair of orders with this number alone: the first, if 0, of those that the seed makes.
ShapleyPlan plan_pair(std::size_t players, std::uint64_t seed, std::size_t number);

// Returns what each pair of a plan's orders says of each player.
std::vector<std::vector<double>> pair_values(const ShapleyPlan& plan,
                                             std::span<const double> worth);
// Returns the standard error of the mean of as many independent figures; 0 for one.
double standard_error(std::span<const double> figures);

// Returns what joining adds to worth(coalition), on average; worth[i] belongs to
// plan.coalitions[i]. The values of all players add up to the worth of everybody less that of
// nobody.
std::vector<ShapleyValue> shapley_values(const ShapleyPlan& plan, std::span<const double> worth);

// A study holds what has been drawn, and what it says.
struct ShapleyStudy {
  ShapleyPlan plan;
  std::vector<ShapleyValue> values;
};
// This returns what the coalitions of a plan are worth.
using CoalitionWorth = std::function<std::vector<double>(const ShapleyPlan&)>;
ShapleyStudy study_plan(ShapleyPlan plan, const CoalitionWorth& worth_of);
// Exact if `most` coalitions are enough; else twice as many orders again and again until no
// standard error is above `precise`, or `most` coalitions are known. With a `precise` of 0 as many
// as there may be are drawn at once.
ShapleyStudy study_shapley(std::size_t players, std::size_t most, double precise,
                           std::uint64_t seed, const CoalitionWorth& worth_of);

}  // namespace stepsim
