// ZeRO++: a secondary partition, 8-bit weights and 4-bit gradients, as bytes in the trace.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

// Nothing persists and nothing is kept: forward and backward gather everything once each.
TinyStep plain_step() {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(), 2, 4);
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.zero.persistence_threshold = 0;
  step.strategy.zero.prefetch_bucket = 0;
  step.strategy.zero.max_reuse = 0;
  return step;
}

// Bytes of parameters and gradients in collectives of groups that span nodes, or that do not.
double moved(const TinyStep& step, bool between_nodes) {
  const StepProgram program = build_step(step.input(), Folding::off);
  double sum = 0;
  for (const Op& op : program.graph.ops()) {
    if (op.pattern == no_pattern || op.bytes.value < 64) continue;
    if (op.cause != Cause::gather_bytes && op.cause != Cause::gradient_reduce) continue;
    if (program.graph.names()[index(op.name)] == "gather_scales") continue;
    const auto& members = program.graph.patterns()[index(op.pattern)].members;
    if (std::find(members.begin(), members.end(), 0) == members.end()) continue;
    const bool far = std::any_of(members.begin(), members.end(), [](Rank r) { return r >= 4; });
    if (far == between_nodes) sum += op.bytes.value;
  }
  return sum;
}

}  // namespace

TEST_CASE("stage 3 moves three model sizes between nodes, a secondary partition leaves two",
          "[workloads]") {
  TinyStep step = plain_step();
  const double model = half * elements_of(step).total;
  CHECK_THAT(moved(step, true), exactly(3 * model));
  CHECK(moved(step, false) == 0);
  step.strategy.zero.hpz = 4;
  CHECK_THAT(moved(step, true), exactly(2 * model));
  CHECK_THAT(moved(step, false), exactly(model));
}

TEST_CASE("8-bit weights halve the gathers: one and a half model sizes with a secondary partition",
          "[workloads]") {
  TinyStep step = plain_step();
  const double model = half * elements_of(step).total;
  step.strategy.zero.quantized_weights = true;
  CHECK_THAT(moved(step, true), exactly(2 * model));
  step.strategy.zero.hpz = 4;
  CHECK_THAT(moved(step, true), exactly(1.5 * model));
}

TEST_CASE("4-bit gradients are a quarter of the bytes in the node, and a rank's share beyond",
          "[workloads]") {
  TinyStep step = plain_step();
  const double vectors =
      static_cast<double>((2 * step.model.layers + 1) * step.model.hidden);  // go as they are
  const double matrices = elements_of(step).total - vectors;
  step.strategy.zero.quantized_gradients = true;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  const auto bytes = [&](std::string_view name) {
    return sum_named(graph, OpKind::collective, name).bytes;
  };
  CHECK_THAT(bytes("exchange_inside"), exactly(half * matrices / 4));
  CHECK_THAT(bytes("exchange_across"), exactly(half * matrices / 4 / 4));
  CHECK_THAT(bytes("reduce_vector"), exactly(half * vectors));
  CHECK(bytes("reduce_bucket") == 0);
  // Within one node DeepSpeed reduces as usual.
  TinyStep small = tiny_step(Sharding::zero3);
  small.strategy.zero.quantized_gradients = true;
  CHECK_THAT(sum_named(build_step(small.input(), Folding::automatic).graph, OpKind::collective,
                       "reduce_bucket")
                 .bytes,
             exactly(half * elements_of(small).total));
}
