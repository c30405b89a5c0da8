// The work that counts as useful, against sums by hand.
#include "workloads/step/model_flops.hpp"

#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/step/step.hpp"

using namespace stepsim;

TEST_CASE("model FLOP of two layers by hand", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.model.layers = 2;
  step.job.micro_batch = 3;
  step.job.accumulation = 5;
  const double tokens = 5 * 3 * 128;
  // q and o, k and v, gate, up and down; the head, but not the table that is looked up.
  const double layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 192, head = 2000 * 64;
  const ModelFlops flops = model_flops(step.input());
  CHECK_THAT(flops.matrices, exactly(6 * tokens * (2 * layer + head)));
  // Two products of 64 wide for each key seen, three times.
  CHECK_THAT(flops.attention, exactly(5 * 3 * 2 * 3 * 4 * 64 * (128 * 129 / 2)));
  CHECK_THAT(flops.attention_in_rows, exactly(12 * 2 * 64 * 128 * tokens));
  step.model.tied_embeddings = true;
  CHECK(model_flops(step.input()).matrices == flops.matrices);
}

TEST_CASE("neither recomputation nor padding nor more GPUs change what a token is worth",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const ModelFlops full = model_flops(step.input());
  step.strategy.checkpointing = Checkpointing::none;
  CHECK(model_flops(step.input()).total() == full.total());
  step.job.fill = 0.5;
  CHECK_THAT(model_flops(step.input()).total(), exactly(full.total() / 2));
  // A padded row is one shorter document.
  step.job.packed = false;
  CHECK_THAT(model_flops(step.input()).attention, exactly(3 * 3 * 4 * 64 * (64 * 65 / 2)));
}

TEST_CASE("answers that were liked or not run forward twice and are compared twice",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(), 2);
  step.job.accumulation = 1;
  const double plain = model_flops(step.input()).matrices;
  step.job.method = Method::kto;
  step.job.packed = false;
  // Beside forward and backward: answers to other prompts, and both by the reference.
  CHECK_THAT(model_flops(step.input()).matrices, exactly(plain * (6 + 2 + 2 * 2) / 6));
  step.job.reference_model = false;
  CHECK_THAT(model_flops(step.input()).matrices, exactly(plain * (6 + 2) / 6));
  const auto passes = [&](std::string_view of) {
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return std::ranges::count_if(graph.ops(), [&](const Op& op) {
      return op.rank == 0 && graph.names()[index(op.name)] == of;
    });
  };
  // Forward and backward, once more forward, then two passes of the reference.
  const auto without_reference = passes("lm_head");
  step.job.reference_model = true;
  CHECK(3 * passes("lm_head") == (3 + 2) * without_reference);
  step.job.method = Method::sft;
  CHECK(3 * passes("lm_head") == 2 * without_reference);
}

TEST_CASE("a token meets the experts that it is sent to", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  const double layer = 2 * 64 * 64 + 2 * 64 * 32 + 8 * 64 + 2 * 3 * 64 * 32, head = 2000 * 64;
  CHECK_THAT(multiplied_parameters(step.model), exactly(3 * layer + head));
  // Slots that nobody fills are no work.
  const double before = model_flops(step.input()).total();
  step.strategy.experts.kernel = MoeKernel::tutel;
  step.strategy.experts.capacity_factor = 2;
  CHECK(model_flops(step.input()).total() == before);
}

TEST_CASE("what multiplies is all that a model is, less tables, norms and biases", "[workloads]") {
  // Published: 8.03e9 parameters, of them a table of 128256 x 4096 that is looked up.
  const Model llama = load_model(source_data(), "llama-3.1-8b");
  CHECK(multiplied_parameters(llama) ==
        static_cast<double>(count_parameters(llama).total() - 128256 * 4096 -
                            count_parameters(llama).of(TensorClass::norm)));
}
