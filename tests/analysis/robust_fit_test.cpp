#include "analysis/studies/fidelity/robust_fit.hpp"

#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

RobustFit line(const std::vector<double>& residuals) {
  RobustFit fit;
  for (const double residual : residuals) fit.rows.push_back({residual, 1, {1}});
  fit.low = {-1};
  fit.high = {1};
  fit.turn = 0.1;
  fit.prior = 1e6;
  return fit;
}

}  // namespace

TEST_CASE("small errors are balanced like squares", "[analysis]") {
  CHECK(solve(line({-0.05, -0.03, -0.01})).front() == Approx(0.03).margin(1e-4));
}

TEST_CASE("one row far off hardly moves the others", "[analysis]") {
  const double alone = solve(line({-0.02, -0.02, -0.02, -0.02})).front();
  const double with = solve(line({-0.02, -0.02, -0.02, -0.02, -5})).front();
  CHECK(alone == Approx(0.02).margin(1e-4));
  CHECK(with < 0.05);
}

TEST_CASE("bounds hold, and what no row tells stays where it was", "[analysis]") {
  RobustFit fit = line({-0.5, -0.5});
  fit.high = {0.2};
  CHECK(solve(fit).front() == Approx(0.2).margin(1e-4));
  RobustFit silent = line({0.3});
  silent.rows.front().slopes = {0};
  silent.prior = 1;
  CHECK(solve(silent).front() == Approx(0).margin(1e-4));
}

TEST_CASE("two constants are told apart by rows that feel them differently", "[analysis]") {
  RobustFit fit;
  fit.low = {-1, -1};
  fit.high = {1, 1};
  fit.prior = 1e6;
  fit.rows = {{-0.02, 1, {1, 0}}, {-0.05, 1, {0, 1}}, {-0.07, 1, {1, 1}}};
  const std::vector<double> x = solve(fit);
  CHECK(x[0] == Approx(0.02).margin(1e-3));
  CHECK(x[1] == Approx(0.05).margin(1e-3));
  CHECK(solve(fit) == x);
}
