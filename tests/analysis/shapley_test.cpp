// Shapley's laws, on games whose values are known.
#include "analysis/studies/explain/shapley.hpp"

#include <bit>
#include <functional>
#include <numeric>

#include "tests/support/exactly.hpp"

namespace stepsim {
namespace {

using Game = std::function<double(Coalition)>;

std::vector<ShapleyValue> solve(const ShapleyPlan& plan, const Game& game) {
  std::vector<double> worth;
  for (const Coalition coalition : plan.coalitions) worth.push_back(game(coalition));
  return shapley_values(plan, worth);
}

std::vector<ShapleyValue> solve(std::size_t players, const Game& game) {
  return solve(plan_shapley(players, 1u << players, 1), game);
}

bool has(Coalition coalition, int player) {
  return (coalition >> player & 1) != 0;
}

// Something without structure, but the same every time.
double rough(Coalition coalition) {
  return static_cast<double>((coalition * 2654435761u) >> 16 & 0xFFF) + coalition;
}

double sum(const std::vector<ShapleyValue>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double total, const ShapleyValue& each) { return total + each.value; });
}

}  // namespace

TEST_CASE("two right gloves and a left one: a pair is worth 1", "[analysis]") {
  // Player 0 has the left glove. Textbook values: 2/3, 1/6, 1/6.
  const auto values = solve(3, [](Coalition c) { return has(c, 0) && c > 1 ? 1.0 : 0.0; });
  CHECK_THAT(values[0].value, exactly(2.0 / 3));
  CHECK_THAT(values[1].value, exactly(1.0 / 6));
  CHECK_THAT(values[2].value, exactly(1.0 / 6));
}

TEST_CASE("an airport's runway: each pays for the part that it needs", "[analysis]") {
  // Needs 1, 2 and 4; whoever joins pays what is still missing. Values 1/3, 1/3 + 1/2, ... + 2.
  const auto values = solve(3, [](Coalition c) {
    return has(c, 2) ? 4.0 : has(c, 1) ? 2.0 : has(c, 0) ? 1.0 : 0.0;
  });
  CHECK_THAT(values[0].value, exactly(1.0 / 3));
  CHECK_THAT(values[1].value, exactly(1.0 / 3 + 1.0 / 2));
  CHECK_THAT(values[2].value, exactly(1.0 / 3 + 1.0 / 2 + 2));
}

TEST_CASE("values add up to what everybody reaches together", "[analysis]") {
  for (const std::size_t players : {1u, 2u, 5u, 8u, 9u, 12u}) {
    CAPTURE(players);
    const ShapleyPlan plan = plan_shapley(players, 256, 7);
    CHECK(plan.exact() == (players <= 8));
    const Coalition all = (Coalition{1} << players) - 1;
    CHECK_THAT(sum(solve(plan, rough)), exactly(rough(all) - rough(0)));
  }
}

TEST_CASE("players that change places get the same, and one that adds nothing gets nothing",
          "[analysis]") {
  // Players 0 and 1 count alike, player 2 never matters.
  const Game game = [](Coalition c) {
    const int pair = (has(c, 0) ? 1 : 0) + (has(c, 1) ? 1 : 0);
    return pair * pair + (has(c, 3) ? 10.0 * pair : 0.0);
  };
  const auto values = solve(4, game);
  CHECK(values[0].value == values[1].value);
  CHECK(values[2].value == 0);
  const ShapleyPlan sampled = plan_shapley(4, 10, 3);
  REQUIRE_FALSE(sampled.exact());
  CHECK(solve(sampled, game)[2].value == 0);
  CHECK(solve(sampled, game)[2].standard_error == 0);
}

TEST_CASE("drawn orders come within a few standard errors of the exact values", "[analysis]") {
  const Game game = [](Coalition c) {
    double worth = 0;
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 10; ++j)
        if (has(c, i) && has(c, j)) worth += (i * 7 + j * 3) % 5;
    return worth + 40.0 * (std::popcount(c) > 6);
  };
  const auto exact = solve(plan_shapley(10, 1024, 1), game);
  const ShapleyPlan plan = plan_shapley(10, 300, 1);
  REQUIRE_FALSE(plan.exact());
  CHECK(plan.coalitions.size() <= 300);
  const auto drawn = solve(plan, game);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CAPTURE(i);
    CHECK(drawn[i].standard_error > 0);
    CHECK(std::abs(drawn[i].value - exact[i].value) < 4 * drawn[i].standard_error + 1e-9);
  }
}

TEST_CASE("a study of orders stops as soon as its values are known well enough", "[analysis]") {
  const Game game = [](Coalition c) {
    return std::popcount(c) + 100.0 * (has(c, 0) && has(c, 1)) + rough(c) / 1000;
  };
  const auto worth = [&](const ShapleyPlan& plan) {
    std::vector<double> values;
    for (const Coalition each : plan.coalitions) values.push_back(game(each));
    return values;
  };
  const auto coalitions = [&](double precise) {
    return study_shapley(10, 800, precise, 3, worth).plan.coalitions.size();
  };
  CHECK(coalitions(1e9) <= 64);
  CHECK(coalitions(0) > 700);
  CHECK(coalitions(1e-9) == coalitions(0));
  const ShapleyStudy some = study_shapley(10, 800, 8, 3, worth);
  CHECK(some.plan.coalitions.size() < coalitions(0));
  for (const ShapleyValue& each : some.values) CHECK(each.standard_error <= 8);
  CHECK(study_shapley(8, 256, 1e9, 3, worth).plan.exact());
}

TEST_CASE("the same seed draws the same orders", "[analysis]") {
  CHECK(plan_shapley(10, 200, 5).orders == plan_shapley(10, 200, 5).orders);
  CHECK(plan_shapley(10, 200, 5).orders != plan_shapley(10, 200, 6).orders);
}

}  // namespace stepsim
