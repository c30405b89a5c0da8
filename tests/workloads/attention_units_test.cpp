// Attention by each kernel: what it multiplies, what it keeps, and when the host runs no further.
#include <algorithm>
#include <array>

#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "workloads/layers/units.hpp"

using namespace stepsim;

namespace {

constexpr double t = 2 * 128, s = 128, q = 64, kv = 32, heads = 4;

Unit attend(std::optional<AttentionKernel> kernel,
            const std::function<void(TinyStep&)>& change = {}) {
  TinyStep step = tiny_step(Sharding::zero3);
  step.job.micro_batch = 2;
  step.job.documents = {32, 0};
  step.strategy.attention = kernel;
  if (change) change(step);
  for (const Unit& unit :
       layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, 0), 0))
    if (unit.name == "self_attn.attend") return unit;
  return {};
}

}  // namespace

TEST_CASE("attention multiplies the keys that its kernel cannot skip", "[workloads]") {
  const double pair = 4 * q;  // two products of one query with one key
  CHECK_THAT(flops_of(attend(AttentionKernel::flash).forward), exactly(pair * 8 * (32 * 33 / 2)));
  CHECK_THAT(flops_of(attend(AttentionKernel::flex).forward), exactly(pair * 8 * (32 * 33 / 2)));
  CHECK_THAT(flops_of(attend(AttentionKernel::sdpa).forward), exactly(pair * 2 * (128 * 129 / 2)));
  for (const AttentionKernel kernel :
       {AttentionKernel::sdpa_efficient, AttentionKernel::sdpa_math, AttentionKernel::eager})
    CHECK_THAT(flops_of(attend(kernel).forward), exactly(pair * 2 * 128 * 128));
  CHECK(flops_of(attend(std::nullopt).forward) == flops_of(attend(AttentionKernel::flash).forward));
}

TEST_CASE("latent attention multiplies wide keys and narrow values, and keeps a vector a token",
          "[workloads]") {
  const auto latent = [](TinyStep& step) {
    Attention& a = step.model.attention;
    a.kv_heads = a.heads;
    a.head_dim = 24;
    a.latent = Latent{.width = 40, .query_width = 20, .rotary = 8, .value = 16};
  };
  const double keys = heads * 24, values = heads * 16;
  const Unit flash = attend(AttentionKernel::flash, latent);
  CHECK_THAT(flops_of(flash.forward), exactly(2 * (keys + values) * 8 * (32 * 33 / 2)));
  // Queries, keys, values, the result and a number for each head.
  CHECK_THAT(flash.memory.saved, exactly(2 * t * (2 * keys + 2 * values) + 4 * t * heads));
  CHECK_THAT(flops_of(attend(AttentionKernel::eager, latent).forward),
             exactly(2 * (keys + values) * t * s));
  TinyStep step = tiny_step(Sharding::zero3);
  const double narrow = static_cast<double>(count_parameters(step.model).of(TensorClass::dense));
  latent(step);
  const double h = static_cast<double>(step.model.hidden);
  const double layers = static_cast<double>(step.model.layers);
  const double before = h * (2 * q + 2 * kv);
  const double now =
      h * 20 + 20 * keys + h * (40 + 8) + 40 * (heads * (24 - 8) + values) + values * h;
  CHECK_THAT(static_cast<double>(count_parameters(step.model).of(TensorClass::dense)),
             exactly(narrow + layers * (now - before)));
}

TEST_CASE("eager attention keeps six bytes for each pair of a row and head", "[workloads]") {
  const double pairs = heads * t * s, tensors = 2 * t * (q + 2 * kv);
  const double flash = attend(AttentionKernel::flash).memory.saved;
  CHECK_THAT(flash, exactly(tensors + 2 * t * q + 4 * t * heads));
  // And keys and values once for each head.
  CHECK_THAT(attend(AttentionKernel::eager).memory.saved,
             exactly(tensors + 6 * pairs + 2 * 2 * t * q));
  CHECK_THAT(attend(AttentionKernel::sdpa_math).memory.saved, exactly(tensors + 4 * pairs));
  const auto compiled = [](TinyStep& step) { step.strategy.compiled = true; };
  CHECK_THAT(attend(AttentionKernel::eager, compiled).memory.saved,
             exactly(tensors + 2 * pairs + 2 * 2 * t * q));
  // Twice the row: four times the scores.
  const auto longer = [](TinyStep& step) { step.job.sequence *= 2; };
  const double scores = attend(AttentionKernel::eager).memory.core - 2 * 2 * t * q;
  CHECK_THAT(attend(AttentionKernel::eager, longer).memory.core - 2 * 2 * 2 * t * q,
             exactly(4 * scores));
}

TEST_CASE("selective recomputation drops the scores of eager attention", "[workloads]") {
  const Unit unit = attend(AttentionKernel::eager);
  // All but the rotation: repeat, product, four kernels of a softmax, product.
  CHECK(unit.core_rows == 4);
  CHECK(launches_of({unit.forward.end() - unit.core_rows, unit.forward.end()}) == 2 + 1 + 4 + 1);
  CHECK(unit.memory.core > 0.5 * unit.memory.saved);
}

TEST_CASE("other kernels reach their share of a flash kernel's rate", "[workloads]") {
  const TinyStep step = tiny_step(Sharding::zero3);
  const auto seconds = [&](AttentionKernel kernel, bool backward) {
    const Unit unit = attend(kernel, [](TinyStep& tiny) {
      tiny.job.sequence = 1 << 16;
      tiny.job.documents = {};
    });
    const std::vector<KernelRow>& rows = backward ? unit.backward : unit.forward;
    const std::vector<KernelRow> core{rows.back()};
    return device_time(step.cluster.gpu, step.stack, core, backward).value;
  };
  for (const bool backward : {false, true}) {
    const double flash = seconds(AttentionKernel::flash, backward);
    CHECK_THAT(seconds(AttentionKernel::flex, backward),
               WithinRel(flash / (backward ? 0.8 : 0.9), 0.01));
    // Both halves of the square.
    CHECK_THAT(seconds(AttentionKernel::sdpa_efficient, backward),
               WithinRel(2 * flash / (backward ? 0.4 : 0.5), 0.01));
  }
}

TEST_CASE("a mask of pairs goes to the later kernel where there is one", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const auto seconds = [&](std::optional<AttentionKernel> kernel, std::int64_t rows) {
    const Unit unit = attend(kernel, [&](TinyStep& tiny) {
      tiny.job.sequence = 1 << 16;
      tiny.job.micro_batch = rows;
      tiny.job.packed = false;
      tiny.job.padding = Padding::longest;
      tiny.job.documents = {};
    });
    return device_time(step.cluster.gpu, step.stack, {unit.forward.back()}, false).value /
           static_cast<double>(rows);
  };
  // PyTorch's choice has a mask as soon as rows end at different places.
  CHECK_THAT(seconds(AttentionKernel::sdpa, 2),
             WithinRel(seconds(AttentionKernel::sdpa_efficient, 2), 1e-3));
  CHECK_THAT(seconds(AttentionKernel::sdpa, 1),
             WithinRel(seconds(AttentionKernel::flash, 1), 1e-3));
  const double older = seconds(AttentionKernel::sdpa, 2);
  step.cluster.gpu.attention.later = step.cluster.gpu.attention.flash;
  step.cluster.gpu.attention.later->forward.value = FlopsPerSecond{800e12};
  step.cluster.gpu.vendor = "nvidia";
  CHECK_THAT(seconds(AttentionKernel::sdpa, 2), WithinRel(older * (0.5 * 400) / (0.6 * 800), 0.01));
  step.cluster.gpu.vendor = "amd";
  CHECK_THAT(seconds(AttentionKernel::sdpa, 2), WithinRel(older, 1e-3));
}

TEST_CASE("a flash kernel that is told where documents end stops the host once a layer and pass",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.stack.attention_reads = 1;
  const auto stops = [&] {
    return sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::host,
                     "read_lengths")
        .count;
  };
  CHECK(stops() == 2 * 3);  // forward and recomputation
  step.strategy.checkpointing = Checkpointing::none;
  CHECK(stops() == 3);
  step.strategy.attention = AttentionKernel::eager;
  CHECK(stops() == 0);
}

TEST_CASE("so the host asks for parameters no further ahead than the next layer", "[workloads]") {
  const auto most = [](int reads) {  // gathered in the forward pass
    TinyStep step = tiny_step(Sharding::zero3);
    step.model.layers = 12;
    step.model.vocabulary = 10;
    step.stack.attention_reads = reads;
    step.job.micro_batch = 4096;  // so that the device falls behind
    step.stack.host.module_hook.value = step.stack.host.gather_tensor.value = {0};
    step.strategy.zero.max_live = step.strategy.zero.max_reuse = 0;
    return numbers_from_worker([&] {
             const Replayed replayed = play(step);
             Timeline timeline = timeline_of(replayed.program.graph, replayed.trace, 0);
             std::erase_if(timeline, [](const MemoryChange& c) { return c.moment != "forward"; });
             return std::vector<double>{
                 read_timeline(timeline, std::array{Pool::device}, 1e30).highest_of("gathered")};
           })
        .front();
  };
  CHECK(most(1) < 0.7 * most(0));
}
