// How long steps take against each other and against what they must at least take.
#include <algorithm>
#include <map>

#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"

using namespace stepsim;

namespace {

// Large enough for the device to be the limit, on a machine whose links are fast.
Model wide_model() {
  Model model = tiny_model();
  model.layers = 4;
  model.hidden = 2048;
  model.vocabulary = 32000;
  model.attention.heads = 16;
  model.attention.kv_heads = 8;
  model.attention.head_dim = 128;
  model.feed_forward.width = 8192;
  return model;
}

TinyStep wide_step(Sharding sharding, const Model& model) {
  TinyStep step = tiny_step(sharding, model);
  const bool overlap = step.strategy.zero.overlap_comm;
  step.strategy.zero = {};  // DeepSpeed's own sizes
  step.strategy.zero.overlap_comm = overlap;
  step.job.sequence = 4096;
  step.job.micro_batch = 8;
  return step;
}

}  // namespace

TEST_CASE("a step takes at least as long as its busiest device and its busiest link",
          "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const std::vector<double> numbers = numbers_from_worker([&] {
      const Replayed replayed = play(variant.step);
      std::map<Rank, double> device, host;
      for (const Op& op : replayed.program.graph.ops()) {
        if (op.kind == OpKind::compute) device[op.rank] += op.seconds.value;
        if (op.kind == OpKind::host) host[op.rank] += op.seconds.value;
      }
      double most = 0;
      for (const auto& [rank, seconds] : device) most = std::max(most, seconds);
      for (const auto& [rank, seconds] : host) most = std::max(most, seconds);
      const Platform& platform = replayed.program.traffic.folded.platform;
      for (std::size_t i = 0; i < platform.links.size(); ++i) {
        const LinkUse& use = replayed.trace.links[i];
        most = std::max({most, use.busy.value, use.bytes / platform.links[i].capacity.value});
      }
      return std::vector<double>{replayed.trace.makespan.value, most};
    });
    CHECK(numbers[1] > 0);
    CHECK(numbers[0] >= numbers[1] * (1 - 1e-9));
  }
}

TEST_CASE("a communicator runs one collective after the other", "[workloads]") {
  for (const Sharding sharding : {Sharding::zero3, Sharding::fsdp}) {
    CAPTURE(sharding_names[static_cast<std::size_t>(sharding)]);
    const std::vector<double> together = numbers_from_worker([&] {
      TinyStep step = wide_step(sharding, wide_model());
      step.strategy.zero.reduce_bucket = 1e7;
      const Replayed replayed = play(step);
      const OpGraph& graph = replayed.program.graph;
      std::vector<std::pair<double, double>> spans;
      double gathers = 0, reductions = 0;
      for (std::size_t i = 0; i < graph.size(); ++i) {
        const Op& op = graph[OpId{static_cast<std::uint32_t>(i)}];
        if (op.kind != OpKind::collective || op.rank != 0 || op.bytes.value < 100) continue;
        spans.emplace_back(replayed.trace.start[i], replayed.trace.finish[i]);
        (op.stream == Stream::reduce ? reductions : gathers) += 1;
      }
      std::sort(spans.begin(), spans.end());
      double longest = 0;
      for (std::size_t i = 1; i < spans.size(); ++i)
        longest = std::max(longest, spans[i - 1].second - spans[i].first);
      return std::vector{longest, gathers, reductions};
    });
    CHECK(together[0] <= 1e-12);  // seconds that two of them share
    CHECK(together[1] > 4);
    CHECK(together[2] > 4);
  }
}

TEST_CASE("a step takes the same time folded and unfolded, however it is sharded", "[workloads]") {
  const auto nodes = GENERATE(1u, 2u);
  for (const Variant& variant : tiny_variants(nodes, 8 / nodes)) {
    CAPTURE(nodes, variant.name);
    CHECK_THAT(seconds_of(variant.step, Folding::automatic),
               WithinRel(seconds_of(variant.step, Folding::off), 1e-9));
  }
}

TEST_CASE("what is not explained makes everything take so many times as long", "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    TinyStep longer = variant.step;
    longer.stack.unexplained.value = {1.25};
    CHECK_THAT(seconds_of(longer, Folding::automatic),
               WithinRel(1.25 * seconds_of(variant.step, Folding::automatic), 1e-9));
  }
}

TEST_CASE("first steps take so many times as long as the stack says, where they are asked for",
          "[workloads]") {
  for (const Variant& variant : tiny_variants(1, 8)) {
    CAPTURE(variant.name);
    TinyStep first = variant.step;
    first.stack.first_steps.value = {1.25};
    CHECK(seconds_of(first) == seconds_of(variant.step));
    first.job.first_steps = true;
    CHECK_THAT(seconds_of(first), WithinRel(1.25 * seconds_of(variant.step), 1e-9));
  }
}

TEST_CASE("leaf modules and ordinary sub-groups never make a step longer", "[workloads]") {
  const auto experts = GENERATE(8, 32);
  const auto reuse = GENERATE(0.0, 1e9);
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(experts));
  step.strategy.zero.max_reuse = reuse;
  CAPTURE(experts, reuse);
  const double as_is = seconds_of(step);
  step.strategy.zero.leaf_modules = true;
  CHECK(seconds_of(step) <= as_is * (1 + 1e-9));
  step.strategy.zero.leaf_modules = false;
  step.strategy.zero.sub_group = 0;
  CHECK(as_is <= seconds_of(step) * (1 + 1e-9));
}

TEST_CASE("a sub-group of the update is one tensor at the least", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.zero.sub_group = 0;
  const double one_by_one = seconds_of(step);
  step.strategy.zero.sub_group = 0.4;
  CHECK(seconds_of(step) == one_by_one);
}

TEST_CASE("releases that count tensors in hooks, and that clear gradients once", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.strategy.zero.sub_group = 0;
  const double as_is = seconds_of(step);
  double tensors = 3;  // embedding, last norm, head
  for (std::int64_t layer = 0; layer < step.model.layers; ++layer)
    for (const Module& module : layer_modules(step.model, layer))
      tensors += static_cast<double>(module.tensors.size());
  // Once instead of once for each tensor, on the host that nothing else waits for.
  step.strategy.zero.clears_in_sub_groups = false;
  const double visit = step.stack.host.clear_visit.value.value;
  CHECK_THAT(as_is - seconds_of(step), WithinRel(tensors * (tensors - 1) * visit, 0.01));
  step.strategy.zero.clears_in_sub_groups = true;
  step.strategy.zero.counts_in_hooks = true;
  CHECK_THAT(seconds_of(step) - as_is,
             WithinRel(tensors * tensors * step.stack.host.count_visit.value.value, 0.01));
}

namespace {

// On the first device: seconds of kernels, seconds of gathers, and how long both ran at once.
struct Shared {
  double step, kernels, gathers, both;
};
Shared shared_time(const TinyStep& step) {
  const std::vector<double> numbers = numbers_from_worker([&] {
    const Replayed replayed = play(step);
    const OpGraph& graph = replayed.program.graph;
    std::vector<std::pair<double, double>> kernels, gathers;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph[OpId{static_cast<std::uint32_t>(i)}];
      const std::pair span{replayed.trace.start[i], replayed.trace.finish[i]};
      if (op.rank != 0) continue;
      if (op.kind == OpKind::compute) kernels.push_back(span);
      if (op.kind == OpKind::collective && op.stream == Stream::gather) gathers.push_back(span);
    }
    std::vector<double> sums{replayed.trace.makespan.value, 0, 0, 0};
    for (const auto& [begin, end] : kernels) sums[1] += end - begin;
    for (const auto& [begin, end] : gathers) {
      sums[2] += end - begin;
      for (const auto& [from, to] : kernels)
        sums[3] += std::max(0.0, std::min(end, to) - std::max(begin, from));
    }
    return sums;
  });
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace

TEST_CASE("a release that stops at each fetch hides no gather, at any batch", "[workloads]") {
  TinyStep step = wide_step(Sharding::zero3, wide_model());
  step.strategy.zero.reduce_bucket = 1e6;  // every matrix goes alone
  const auto with = [&](bool stops, std::int64_t batch) {
    step.strategy.zero.stops_at_fetches = stops;
    step.job.micro_batch = batch;
    return shared_time(step);
  };
  const Shared some = with(true, 4), twice = with(true, 8), ahead = with(false, 8);
  for (const Shared& each : {some, twice}) {
    CHECK(each.both <= 1e-12);
    CHECK(each.step >= each.kernels + each.gathers);
  }
  // Releases that run on hide most of it, and gather what is used again soon only once.
  CHECK(ahead.both > 0.5 * ahead.gathers);
  CHECK(ahead.step < ahead.kernels + ahead.gathers);
  CHECK(ahead.gathers < 0.75 * twice.gathers);
}

TEST_CASE("a dense model is as fast under stage 3 as under stage 2", "[workloads]") {
  const double two = seconds_of(wide_step(Sharding::zero2, wide_model()));
  const double three = seconds_of(wide_step(Sharding::zero3, wide_model()));
  CHECK_THAT(three, WithinRel(two, 0.05));
}

TEST_CASE("experts one by one under stage 3 take several times as long as under stage 2",
          "[workloads]") {
  Model model = wide_model();
  model.experts = Experts{.count = 64, .per_token = 4, .width = 512};
  TinyStep three = wide_step(Sharding::zero3, model);
  three.strategy.zero.sub_group = 0;
  TinyStep two = wide_step(Sharding::zero2, model);
  two.strategy.experts.kernel = MoeKernel::tutel;
  two.strategy.experts.parallel = 8;
  CHECK(seconds_of(three) > 3 * seconds_of(two));
}

TEST_CASE("faster parts never make a step longer", "[workloads]") {
  for (const Variant& variant : tiny_variants(1, 8)) {
    CAPTURE(variant.name);
    const double before = seconds_of(variant.step);
    TinyStep faster = variant.step;
    faster.cluster.node.host.core_speed.value = {2};
    CHECK(seconds_of(faster) <= before * (1 + 1e-9));
    faster = variant.step;
    faster.cluster.gpu.gemm.rate.value = {1000e12};
    CHECK(seconds_of(faster) <= before * (1 + 1e-9));
  }
}
