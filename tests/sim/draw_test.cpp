// Draws of constants: every slice once, the same name the same luck.
#include "sim/base/draw.hpp"

#include <set>
#include <string>

#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("over all samples a constant visits every slice of its range once", "[sim]") {
  constexpr std::uint32_t samples = 16;
  const std::string name = GENERATE("gpu.gemm.rate", "node.host.core_speed", "stack.host.sync");
  CAPTURE(name);
  std::set<int> slices;
  for (std::uint32_t i = 0; i < samples; ++i) {
    const double q = quantile({.seed = 7, .sample = i, .of = samples}, name);
    CHECK(q >= 0);
    CHECK(q < 1);
    slices.insert(static_cast<int>(q * samples));
  }
  CHECK(slices.size() == samples);
}

TEST_CASE("a name has the same draw wherever it stands, another name its own", "[sim]") {
  const Draw draw{.seed = 3, .sample = 2, .of = 8};
  CHECK(quantile(draw, "gpu.memory.bandwidth") == quantile(draw, "gpu.memory.bandwidth"));
  CHECK(quantile(draw, "gpu.memory.bandwidth") != quantile(draw, "gpu.memory.capacity"));
  CHECK(quantile(draw, "gpu.memory.bandwidth") !=
        quantile({.seed = 4, .sample = 2, .of = 8}, "gpu.memory.bandwidth"));
}

TEST_CASE("the stated value is the median of its range, however lopsided", "[sim]") {
  NamedConstant constant;
  constant.value = 10;
  constant.low = 4;
  constant.high = 40;
  CHECK(value_at(constant, 0) == constant.low);
  CHECK(value_at(constant, 0.25) == (constant.low + constant.value) / 2);
  CHECK(value_at(constant, 0.5) == constant.value);
  CHECK(value_at(constant, 0.75) == (constant.value + constant.high) / 2);
  CHECK(value_at(constant, 1) == constant.high);
}

}  // namespace stepsim
