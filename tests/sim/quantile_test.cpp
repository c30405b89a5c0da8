#include <vector>

#include "sim/base/draw.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

TEST_CASE("quantiles lie between entries in proportion", "[sim]") {
  CHECK(quantile(std::vector<double>{}, 0.5) == 0);
  CHECK(quantile(std::vector<double>{3}, 0.9) == 3);
  CHECK(quantile(std::vector<double>{1, 2, 3, 4}, 0.5) == 2.5);
  CHECK(quantile(std::vector<double>{0, 10}, 0.9) == 9);
}
