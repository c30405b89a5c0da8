// Megatron's distributed optimizer: what it moves, what it keeps, and that overlap pays.
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/sharding/states.hpp"

using namespace stepsim;

namespace {

TinyStep distributed_step(bool overlap) {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.distributed = {true, overlap, overlap, 0};
  step.strategy.gradients = GradientType::fp32;
  return step;
}

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double held(const TinyStep& step, Held held_class) {
  double sum = 0;
  for (const Holding& holding : resident_of(step.rank()).holdings)
    if (holding.held == held_class) sum += holding.bytes;
  return sum;
}

// More than one bucket of forty million.
Model large_model() {
  Model model = tiny_model();
  model.layers = 8;
  model.hidden = 2048;
  model.vocabulary = 32000;
  model.feed_forward.width = 8192;
  return model;
}

}  // namespace

TEST_CASE("gradients are scattered once, whatever is accumulated, and parameters gathered once",
          "[workloads]") {
  const auto overlap = GENERATE(true, false);
  const auto accumulation = GENERATE(1, 4);
  TinyStep step = distributed_step(overlap);
  step.job.accumulation = accumulation;
  const double total = elements_of(step).total;
  const OpGraph graph = graph_of(step);
  CHECK_THAT(sum_named(graph, OpKind::collective, "reduce_bucket").bytes, exactly(4 * total));
  CHECK_THAT(sum_named(graph, OpKind::collective, "gather_updated").bytes, exactly(2 * total));
  step.strategy.gradients = GradientType::bf16;
  CHECK_THAT(sum_named(graph_of(step), OpKind::collective, "reduce_bucket").bytes,
             exactly(2 * total));
}

TEST_CASE("one buffer of all gradients stays, and moments may be in 16 bits", "[workloads]") {
  TinyStep step = distributed_step(true);
  const double total = elements_of(step).total, ranks = step.cluster.ranks();
  CHECK_THAT(held(step, Held::gradients), exactly(4 * total));
  CHECK_THAT(held(step, Held::optimizer), exactly(8 * total / ranks));
  step.strategy.gradients = GradientType::bf16;
  step.strategy.moments = MomentType::bf16;
  CHECK_THAT(held(step, Held::gradients), exactly(2 * total));
  CHECK_THAT(held(step, Held::optimizer), exactly(4 * total / ranks));
}

TEST_CASE("few ranks may share one copy of the states, and sum their parts over the others",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1, tiny_model(), 2, 4);
  step.strategy.distributed = {true, true, true, 4};
  const double total = elements_of(step).total;
  const OpGraph graph = build_step(step.input(), Folding::off).graph;
  CHECK_THAT(sum_named(graph, OpKind::collective, "reduce_bucket").bytes, exactly(2 * total));
  CHECK_THAT(sum_named(graph, OpKind::collective, "reduce_copies").bytes, exactly(2 * total / 4));
  CHECK_THAT(held(step, Held::optimizer), exactly(8 * total / 4));
}

TEST_CASE("buckets that travel beside the passes make a step shorter", "[workloads]") {
  TinyStep together = distributed_step(true), apart = distributed_step(false);
  together.model = apart.model = large_model();
  together.job.sequence = apart.job.sequence = 2048;
  const OpGraph graph = graph_of(together);
  CHECK(sum_named(graph, OpKind::collective, "reduce_bucket").count > 4);
  CHECK(sum_named(graph_of(apart), OpKind::collective, "reduce_bucket").count == 1);
  CHECK(seconds_of(together) < seconds_of(apart));
}
