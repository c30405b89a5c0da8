// Kernels by what bounds them add up to what a step has, also where few micro-batches stand for
// all.
#include "analysis/studies/predict/kernel_times.hpp"

#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

TEST_CASE("kernels of a step are those that it writes", "[profile]") {
  for (const char* name :
       {"measured/own/qwen3-0.6b-1x512", "measured/own/qwen3-0.6b-8x2048-checkpoints",
        "seeds/llama32-3b-sft-zero3", "seeds/mpt7b-zero2"}) {
    CAPTURE(name);
    const Scenario scenario = load_scenario(
        source_data(), STEPSIM_SOURCE_DATA "/scenarios/" + std::string(name) + ".yaml", {});
    const StepInput input = step_input(scenario);
    const StepProgram program = build_step(input, Folding::automatic);
    double written = 0;
    for (const Op& op : program.graph.ops())
      if (op.kind == OpKind::compute && op.rank == 0) written += op.seconds.value;
    const KernelTimes times = kernel_times(input);
    CHECK(times.all() == Approx(written).epsilon(1e-9));
    CHECK(times.products > times.attention);
    CHECK(times.other > 0);
  }
}

}  // namespace stepsim
