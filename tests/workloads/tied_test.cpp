// A head that shares the matrix of the embedding.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

TinyStep step_with(bool tied, Sharding sharding, double reuse) {
  TinyStep step = tiny_step(sharding);
  step.model.tied_embeddings = tied;
  step.strategy.zero.max_reuse = reuse;
  step.strategy.zero.max_live = 0;
  return step;
}

double matrix(const TinyStep& step) {
  return half * static_cast<double>(step.model.vocabulary * step.model.hidden);
}

double gathered(const TinyStep& step) {
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  return sum_of(graph, OpKind::collective, Cause::gather_bytes).bytes;
}

}  // namespace

TEST_CASE("under stage 3 a tied head gathers the embedding's matrix like one of its own",
          "[workloads]") {
  CHECK_THAT(gathered(step_with(true, Sharding::zero3, 0)),
             exactly(gathered(step_with(false, Sharding::zero3, 0))));
  // What is kept for its next use is there for both: one gather in place of two.
  const TinyStep tied = step_with(true, Sharding::zero3, 1e12);
  CHECK_THAT(gathered(step_with(false, Sharding::zero3, 1e12)) - gathered(tied),
             exactly(matrix(tied)));
}

TEST_CASE("the gradient of a tied matrix waits from the head to the embedding", "[workloads]") {
  for (const Sharding sharding :
       {Sharding::zero0, Sharding::zero1, Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
    const TinyStep step = step_with(true, sharding, 0);
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    std::int16_t from = 0, to = 0;
    for (const MemoryEffect& effect : graph.memory()) {
      if (graph.names()[index(effect.tensor_class)] != "gradients") continue;
      if (effect.at_start && effect.bytes == matrix(step) && from == 0)
        from = graph[effect.op].layer;
      if (!effect.at_start && effect.bytes == -matrix(step)) to = graph[effect.op].layer;
    }
    CHECK(from == step.model.layers);
    CHECK(to == -1);
  }
}

TEST_CASE("a tied matrix leaves no bytes behind", "[workloads]") {
  for (const double reuse : {0.0, 1e12})
    for (const Sharding sharding :
         {Sharding::zero0, Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
      const StepProgram program =
          build_step(step_with(true, sharding, reuse).input(), Folding::automatic);
      double sum = 0;
      for (const MemoryEffect& effect : program.graph.memory()) sum += effect.bytes;
      CHECK(std::abs(sum) < 1);
    }
}
