// These tests run what older cards lack: bf16, and FlashAttention.
#include "scenarios/read/lacks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

Scenario on(const std::string& node, const std::string& strategy) {
  const TemporaryFolder folder;
  put_bytes(folder.file("run.yaml"),
            fmt::format("name: a run\nmodel: llama-3.1-8b\ncluster: {{node: {}}}\nstack: "
                        "deepspeed-hf\njob: {{sequence: 512}}\nstrategy: {}\n",
                        node, strategy));
  return load_scenario(source_data(), folder.file("run.yaml"));
}

bool says(const Scenario& scenario, const std::string& words) {
  return std::ranges::any_of(scenario.notes, [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("bf16 on a card without it is emulated, and fp16 is not", "[scenarios]") {
  const Scenario slow = on("t4-1", "{zero: 0}"), fast = on("t4-1", "{zero: 0, precision: fp16}");
  CHECK(slow.cluster.gpu.gemm.rate.number() < 0.1 * fast.cluster.gpu.gemm.rate.number());
  CHECK(slow.cluster.gpu.attention.flash.forward.number() <
        0.1 * fast.cluster.gpu.attention.flash.forward.number());
  CHECK(says(slow, "t4 has no units for bf16"));
  CHECK_FALSE(says(fast, "no units for bf16"));
  CHECK_FALSE(says(on("a10g-1", "{zero: 0}"), "no units for bf16"));
}

TEST_CASE("32-bit products on a card without bf16 keep their rate", "[scenarios]") {
  const Scenario whole = on("t4-1", "{zero: 0, precision: fp32}");
  const Gpu& gpu = whole.cluster.gpu;
  CHECK_THAT(gpu.gemm.rate.number(), exactly(40e12));
  CHECK(says(on("v100-1", "{zero: 0, precision: tf32}"), "has no TF32"));
}

TEST_CASE("FlashAttention on a card before Ampere becomes SDPA and says so", "[scenarios]") {
  const Scenario old = on("v100-1-32", "{zero: 0, precision: fp16, attention: flash}");
  CHECK(old.strategy.attention == AttentionKernel::sdpa);
  CHECK(says(old, "FlashAttention-2 has no kernels for v100-sxm2-32"));
  const Scenario newer = on("rtx3090-1", "{zero: 0, attention: flash}");
  CHECK(newer.strategy.attention == AttentionKernel::flash);
  CHECK_FALSE(says(newer, "FlashAttention-2 has no kernels"));
}

}  // namespace stepsim
