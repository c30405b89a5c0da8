// What holds the host of a stage-3 step back, and what a layout changes.
#include "tests/support/catch.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"

using namespace stepsim;

namespace {

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

std::size_t named(const OpGraph& graph, std::string_view name) {
  std::size_t count = 0;
  for (const Op& op : graph.ops()) count += graph.names()[index(op.name)] == name ? 1 : 0;
  return count;
}

// A device that has `spare` bytes beside what the step always keeps.
TinyStep with_room(double spare) {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.zero.max_reuse = step.strategy.zero.max_live = 0;
  step.job.micro_batch = 64;
  step.cluster.gpu.memory.usable.value =
      Bytes{build_step(step.input(), Folding::automatic).resident.in(Pool::device) + spare};
  return step;
}

}  // namespace

TEST_CASE("the host waits for the reduction before the last two", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const OpGraph graph = graph_of(step);
  const Sum buckets = sum_named(graph, OpKind::collective, "reduce_bucket");
  CHECK(buckets.count > 3);
  CHECK(static_cast<double>(named(graph, "reduce_limit")) == buckets.count - 3);
  step.strategy.zero.reduce_bucket = 1e9;
  CHECK(named(graph_of(step), "reduce_limit") == 0);
}

TEST_CASE("the host waits when there is no room to gather ahead", "[workloads]") {
  CHECK(named(graph_of(with_room(1e12)), "allocator_wait") == 0);
  const TinyStep narrow = with_room(0);
  CHECK(named(graph_of(narrow), "allocator_wait") > 10);
  // Waiting costs what running ahead hid, and no more than that.
  CHECK(seconds_of(narrow) >= seconds_of(with_room(1e12)));
}

TEST_CASE("preferences keep logits that a fused loss would not", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.stack.cross_entropy = CrossEntropy::fused;
  const auto head_bytes = [&] {
    return head_units(step.model, step.stack, step.strategy, step.job).back().memory.saved;
  };
  step.job.micro_batch = 32;
  const double fused = head_bytes();
  step.job.method = Method::dpo;  // twice the rows
  const double slots = step.job.slots();
  const double logits = 2.0 * 2000 * slots;
  CHECK(fused < logits / 4);
  CHECK(head_bytes() < logits / 4);  // a fused loss keeps none of pairs either
  step.stack.cross_entropy = CrossEntropy::logits;
  CHECK(head_bytes() > logits);
}

TEST_CASE("a grouped kernel takes fused tensors, however a checkpoint stores them", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::grouped;
  for (const Unit& unit :
       layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, 0), 0))
    if (unit.kind == TensorClass::expert)
      CHECK(unit.tensors == std::vector<double>{2.0 * 8 * 64 * 32, 8.0 * 64 * 32});
}
