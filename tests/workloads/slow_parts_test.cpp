// Ranks and links that are slower than the others.
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"

using namespace stepsim;

namespace {

TinyStep step_on(const std::vector<double>& speeds) {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(), 1, 4);
  // Long kernels, so that the host is never waited for.
  step.cluster.gpu.gemm.rate.value = {1e9};
  step.cluster.speeds = speeds;
  return step;
}

}  // namespace

TEST_CASE("a slow rank holds up all of them by what its kernels take longer", "[workloads]") {
  const double even = seconds_of(step_on({})), one = seconds_of(step_on({1, 1, 0.5, 1})),
               all = seconds_of(step_on({0.5, 0.5, 0.5, 0.5}));
  CHECK(one > 1.5 * even);
  CHECK_THAT(one, WithinRel(all, 1e-3));
  CHECK_THAT(seconds_of(step_on({1, 1, 1, 1})), exactly(even));
}

TEST_CASE("ranks that are equally slow are still simulated once", "[workloads]") {
  for (const auto& speeds : {std::vector<double>{1, 1, 0.5, 1}, {0.5, 0.8, 0.5, 0.8}}) {
    const TinyStep step = step_on(speeds);
    CHECK_THAT(seconds_of(step, Folding::automatic), exactly(seconds_of(step, Folding::off)));
  }
  CHECK(build_step(step_on({0.5, 0.5, 0.5, 0.5}).input(), Folding::automatic).traffic.lanes() == 1);
  CHECK(build_step(step_on({0.5, 0.8, 0.5, 0.8}).input(), Folding::automatic).traffic.lanes() == 2);
}

TEST_CASE("a slow link slows what crosses it, and nothing else", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(), 1, 4);
  const double even = seconds_of(step);
  step.cluster.slow_links = {{LinkId{0}, 1e-4}};
  CHECK(seconds_of(step) > even);
  step.cluster.slow_links = {{LinkId{0}, 1}};
  CHECK_THAT(seconds_of(step), exactly(even));
}
