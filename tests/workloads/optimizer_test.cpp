// What an update is made of, by the kind of optimizer.
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding.hpp"

using namespace stepsim;

namespace {

Sum stops(Sharding sharding, OptimizerKind kind, double groups) {
  TinyStep step = tiny_step(sharding);
  step.strategy.optimizer = kind;
  step.strategy.zero.sub_group = elements_of(step).total / 8 / groups;
  return sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::host, "update_done");
}

}  // namespace

TEST_CASE("bitsandbytes stops the host behind every tensor that it sees", "[workloads]") {
  CHECK(stops(Sharding::zero3, OptimizerKind::adamw_8bit, 5).count == 5);
  CHECK(stops(Sharding::zero2, OptimizerKind::adamw_8bit, 5).count == 2);  // what decays and not
  CHECK(stops(Sharding::fsdp, OptimizerKind::adamw_8bit, 5).count == 1);   // all in one
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adamw_4bit})
    CHECK(stops(Sharding::zero3, kind, 5).count == 0);
}

TEST_CASE("kernels of an update: lists of tensors, or each by itself", "[workloads]") {
  CHECK(update_launches(OptimizerKind::adamw, 500, 4) == 4);
  CHECK(update_launches(OptimizerKind::adamw_8bit, 500, 4) == 500);
  CHECK(update_launches(OptimizerKind::adamw_4bit, 500, 4) == 1000);
  CHECK(update_launches(OptimizerKind::adamw_8bit, 1, 4) == 4);  // with those around it
}

TEST_CASE("under FSDP an 8-bit update takes a stop of the host for each tensor longer",
          "[workloads]") {
  const auto seconds = [](double sync) {
    TinyStep step = tiny_step(Sharding::fsdp);
    step.strategy.optimizer = OptimizerKind::adamw_8bit;
    step.stack.host.sync.value = {sync};
    return seconds_of(step);
  };
  const double tensors = 3 * 9 + 3;
  CHECK_THAT(seconds(2) - seconds(1), WithinRel(tensors, 1e-6));
}
