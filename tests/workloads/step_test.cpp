// What a training step moves, counted: bytes per mechanism from the model's dimensions.
#include "workloads/step/step.hpp"

#include <algorithm>
#include <tuple>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"

using namespace stepsim;
using Catch::WithinAbs;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double gathered(const TinyStep& step) {
  return sum_of(graph_of(step), OpKind::collective, Cause::gather_bytes).bytes;
}

double reduced(const TinyStep& step) {
  return sum_of(graph_of(step), OpKind::collective, Cause::gradient_reduce).bytes;
}

}  // namespace

TEST_CASE("stages 0 to 2 reduce each gradient once, stage 2 once per micro-batch", "[workloads]") {
  const auto sharding = GENERATE(Sharding::zero0, Sharding::zero1, Sharding::zero2);
  const auto accumulation = GENERATE(1, 3);
  TinyStep step = tiny_step(sharding);
  step.job.accumulation = accumulation;
  CAPTURE(sharding_names[static_cast<std::size_t>(sharding)], accumulation);
  const double total = elements_of(step).total;
  const double times = sharding == Sharding::zero2 ? accumulation : 1;
  CHECK_THAT(reduced(step), exactly(times * half * total));
  // The updated parameters come together once, at the end.
  CHECK_THAT(gathered(step), WithinAbs(sharding == Sharding::zero0 ? 0 : half * total, 1e-6));
}

TEST_CASE("stage 3 that keeps nothing gathers layers for each of three passes", "[workloads]") {
  const auto accumulation = GENERATE(1, 3);
  TinyStep step = tiny_step(Sharding::zero3);
  step.job.accumulation = accumulation;
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const Elements e = elements_of(step);
  // What stands outside the layers is not recomputed; what stays gathered is so again after the
  // update.
  CHECK_THAT(gathered(step),
             exactly(half * (accumulation * (3 * e.inner + 2 * e.outer) + e.small)));
  CHECK_THAT(reduced(step), exactly(accumulation * half * e.total));
  step.strategy.checkpointing = Checkpointing::none;
  CHECK_THAT(gathered(step),
             exactly(half * (accumulation * (2 * e.inner + 2 * e.outer) + e.small)));
}

TEST_CASE("stage 3 gathers twice when a recomputed layer is kept for its backward pass",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const Elements e = elements_of(step);
  const double layer = e.inner / static_cast<double>(step.model.layers);
  const double head = e.outer / 2;
  REQUIRE(head > 2 * layer);
  step.strategy.zero.prefetch_bucket = 0;
  step.strategy.zero.max_reuse = 2 * layer;
  // The head's own backward follows at once; the embedding is far away.
  CHECK_THAT(gathered(step), exactly(half * (2 * e.inner + e.outer / 2 * 3 + e.small)));
  // All within reach of everything: one gather.
  step.strategy.zero.max_reuse = 1e9;
  CHECK_THAT(gathered(step), exactly(half * (e.inner + e.outer + e.small)));
}

TEST_CASE("prefetching moves the same gradients and never more parameters", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const double alone = gathered(step), gradients = reduced(step);
  for (const double bucket : {1.0, 1e3, 1e4, 1e5}) {
    step.strategy.zero.prefetch_bucket = bucket;
    CAPTURE(bucket);
    CHECK(gathered(step) <= alone * (1 + 1e-12));
    CHECK_THAT(reduced(step), exactly(gradients));
  }
}

TEST_CASE("stage 3 without reuse gathers every expert matrix by itself, a leaf module all at once",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const double layers = static_cast<double>(step.model.layers);
  // Per layer q, k, v, o and the router, and of each expert three; two tables outside; of norms
  // two per layer and one, which are gathered after the update.
  const double attention = 4, router = 1, experts = 8 * 3, outside = 2, norms = 2 * layers + 1;
  const auto gathers = [&] {
    return sum_of(graph_of(step), OpKind::collective, Cause::gather_bytes).count;
  };
  CHECK(gathers() == 3 * layers * (attention + router + experts) + 2 * outside + norms);
  step.strategy.zero.leaf_modules = true;
  CHECK(gathers() == 3 * layers * (attention + 1) + 2 * outside + norms);
  CHECK_THAT(gathered(step),
             exactly(half * (3 * elements_of(step).inner + 2 * elements_of(step).outer +
                             elements_of(step).small)));
}

TEST_CASE("a leaf module is fetched in each pass, whatever its first unit is", "[workloads]") {
  const auto kernel = GENERATE(MoeKernel::loop, MoeKernel::grouped, MoeKernel::tutel);
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.model.experts->shared_width = 48;
  step.strategy.experts.kernel = kernel;
  step.strategy.zero.leaf_modules = true;
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const Elements e = elements_of(step);
  CHECK_THAT(gathered(step), exactly(half * (3 * e.inner + 2 * e.outer + e.small)));
}

TEST_CASE("an expert layer exchanges tokens six times, four without recomputation", "[workloads]") {
  const auto ranks = GENERATE(2, 4, 8);
  const auto checkpointing = GENERATE(Checkpointing::full, Checkpointing::none);
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::tutel;
  step.strategy.experts.parallel = ranks;
  step.strategy.experts.capacity_factor = 1.25;
  step.strategy.checkpointing = checkpointing;
  step.job.accumulation = 2;
  CAPTURE(ranks);
  const double passes = checkpointing == Checkpointing::full ? 3 : 2;
  const double count = 2 * 2 * passes * static_cast<double>(step.model.layers);
  const double slots = step.job.slots() * static_cast<double>(step.model.experts->per_token) * 1.25;
  const Sum sum = sum_of(graph_of(step), OpKind::collective, Cause::moe_all_to_all);
  CHECK(sum.count == count);
  CHECK_THAT(sum.bytes, exactly(count * half * slots * static_cast<double>(step.model.hidden)));
}

TEST_CASE("experts are reduced among the ranks that hold the same ones", "[workloads]") {
  const auto ranks = GENERATE(2, 4, 8);
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::tutel;
  step.strategy.experts.parallel = ranks;
  const Elements e = elements_of(step);
  // With as many ranks as there are, nobody else holds an expert: it is not reduced at all.
  const double shared = ranks == 8 ? 0 : e.experts / ranks;
  CAPTURE(ranks);
  CHECK_THAT(reduced(step), exactly(half * (e.total - e.experts + shared)));
  CHECK_THAT(gathered(step), exactly(half * (e.total - e.experts + shared)));
}

TEST_CASE("stage 2 sends its share of the gradients down in fp32 and gets 16 bits back",
          "[workloads]") {
  const auto accumulation = GENERATE(1, 3);
  const bool loses_sums = GENERATE(false, true);
  TinyStep step = tiny_step(Sharding::zero2);
  step.strategy.optimizer_place = Offload::cpu;
  step.strategy.zero.loses_sums = loses_sums;
  step.job.accumulation = accumulation;
  const double shard = elements_of(step).total / 8;
  const OpGraph graph = graph_of(step);
  // Before the last micro-batch sums wait on the host in 16 bits, and come up to be added to.
  const double sums = loses_sums ? std::min(accumulation - 1, 1) : accumulation - 1;
  CHECK_THAT(sum_named(graph, OpKind::transfer, "gradient_to_host").bytes,
             exactly((2 * sums + 4) * shard));
  CHECK_THAT(sum_named(graph, OpKind::transfer, "gradient_from_host").bytes,
             WithinAbs(2.0 * (accumulation - 1) * shard, 1e-6));
  CHECK_THAT(sum_named(graph, OpKind::transfer, "parameters_to_device").bytes, exactly(2 * shard));
}

TEST_CASE("stage 2 waits for all that a bucket's owner copies, unless owners take turns by tensor",
          "[workloads]") {
  const bool pins = GENERATE(false, true);
  const double ranks = 8;
  const auto waited = [&](bool round_robin, std::string_view name) {
    TinyStep step = tiny_step(Sharding::zero2);
    step.strategy.optimizer_place = Offload::cpu;
    step.strategy.offload.pins = pins;
    step.strategy.zero.round_robin = round_robin;
    step.strategy.zero.reduce_bucket = 1e12;  // one, with more tensors than ranks
    step.job.accumulation = 2;
    return sum_named(graph_of(step), OpKind::host, name).seconds;
  };
  CAPTURE(pins);
  for (const std::string_view name : {"check_and_copy", "pageable_copies"}) {
    CAPTURE(name);
    if (pins && name == "pageable_copies")
      CHECK(waited(false, name) == 0);  // the host goes on
    else
      CHECK_THAT(waited(false, name), exactly(ranks * waited(true, name)));
  }
}

TEST_CASE("stage 3 moves each gradient down, up and down again: eight bytes", "[workloads]") {
  const auto accumulation = GENERATE(1, 3);
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.optimizer_place = Offload::cpu;
  step.job.accumulation = accumulation;
  const double shard = elements_of(step).total / 8;
  const OpGraph graph = graph_of(step);
  // fp32 goes down at the last micro-batch only; 16 bits come and go at each.
  CHECK_THAT(sum_named(graph, OpKind::transfer, "gradient_partition").bytes,
             exactly((4.0 * accumulation + 4) * shard));
  CHECK_THAT(sum_named(graph, OpKind::transfer, "parameters_to_device").bytes, exactly(2 * shard));
}

TEST_CASE("offloaded parameters come up with every gather, each rank its share", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.optimizer_place = step.strategy.parameter_place = Offload::cpu;
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const Elements e = elements_of(step);
  CHECK_THAT(sum_named(graph_of(step), OpKind::transfer, "parameters_to_device").bytes,
             exactly(half * (3 * e.inner + 2 * e.outer + e.small) / 8));
}

TEST_CASE("a reference model gathers for one forward pass and reduces nothing", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  step.job.method = Method::dpo;
  const Elements e = elements_of(step);
  CHECK_THAT(gathered(step), exactly(half * (4 * e.inner + 3 * e.outer + e.small)));
  CHECK_THAT(reduced(step), exactly(half * e.total));
  step.job.reference_model = false;
  CHECK_THAT(gathered(step), exactly(half * (3 * e.inner + 2 * e.outer + e.small)));
}

namespace {

// What the host of the first rank takes for operations of this name, or for all.
double host_seconds(const TinyStep& step, std::string_view name = "") {
  const OpGraph graph = graph_of(step);
  double seconds = 0;
  for (const Op& op : graph.ops())
    if (op.rank == 0 && op.kind == OpKind::host &&
        (name.empty() || graph.names()[index(op.name)] == name))
      seconds += op.seconds.value;
  return seconds;
}

// How often the host pays this constant.
double times_paid(TinyStep step, Constant<Seconds> Stack::HostCosts::*cost) {
  (step.stack.host.*cost).value = {0};
  const double without = host_seconds(step);
  (step.stack.host.*cost).value = {1};
  return std::round(host_seconds(step) - without);
}

}  // namespace

TEST_CASE("hooks are charged per module that owns parameters, not per tensor", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const auto hooks = [&] { return host_seconds(step, "fetch_release"); };
  const double plain = hooks();
  step.model.attention.qkv_bias = step.model.attention.output_bias = true;
  step.model.norm_bias = true;
  CHECK_THAT(hooks(), exactly(plain));
}

TEST_CASE("a leaf module has hooks of its own and none of what is in it", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  step.strategy.zero.leaf_modules = true;
  const auto& host = step.stack.host;
  const double layers = static_cast<double>(step.model.layers);
  // Norm, q, k, v, o, norm own parameters; the layer, its attention and the block itself do not.
  constexpr double layer = 9, outside = 5;
  CHECK_THAT(host_seconds(step, "fetch_release"),
             exactly((3 * layers * layer + 2 * outside) * host.module_hook.value.value));
}

TEST_CASE("a gathered tensor costs its host time wherever it is gathered", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
  const auto tensors = [&] { return times_paid(step, &Stack::HostCosts::gather_tensor); };
  step.strategy.zero.max_reuse = 0;
  step.strategy.zero.prefetch_bucket = 0;
  const StepInput input = step.input();
  const RankPart rank = rank_part(input);
  double matrices = 0;
  for (const Visit& visit : visits_of(rank.units))
    for (const auto* list : {&visit.unit->tensors, &visit.unit->borrowed})
      for (const double elements : *list)
        if (elements > step.strategy.zero.persistence_threshold) ++matrices;
  CHECK(tensors() > 0);
  CHECK(tensors() == matrices);
  step.strategy.zero.leaf_modules = true;
  CHECK(tensors() == matrices);
  step.strategy.zero.persistence_threshold = 1e12;
  CHECK(tensors() == 0);
}

TEST_CASE("reductions cost the host by the bucket, gradients by the tensor", "[workloads]") {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    CAPTURE(static_cast<int>(sharding));
    TinyStep step = tiny_step(sharding);
    step.strategy.zero.reduce_bucket = 1e12;
    const auto each = sharding == Sharding::zero3 ? &Stack::HostCosts::partition_hook
                                                  : &Stack::HostCosts::gradient_hook;
    const StepInput input = step.input();
    const RankPart rank = rank_part(input);
    double tensors = 0;
    for (const Visit& visit : visits_of(rank.units))
      if (visit.phase == Phase::backward)
        tensors += static_cast<double>(visit.unit->tensors.size());
    CHECK(times_paid(step, each) == tensors);
    CHECK(times_paid(step, &Stack::HostCosts::reduce_calls) == 1);
    step.strategy.zero.reduce_bucket = 1;  // every tensor by itself
    CHECK(times_paid(step, each) == tensors);
    CHECK(times_paid(step, &Stack::HostCosts::reduce_calls) == tensors);
  }
}

TEST_CASE("tensors of the update cost the host, and those that stay are gathered anew",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  const auto& host = step.stack.host;
  step.strategy.zero.persistence_threshold = 0;
  const double all = host_seconds(step, "update_tensors") / host.update_tensor.value.value;
  CHECK(all > 0);
  CHECK(host_seconds(step, "kept_tensors") == 0);
  step.strategy.zero.persistence_threshold = 1e12;
  CHECK_THAT(host_seconds(step, "kept_tensors"), exactly(all * host.kept_tensor.value.value));
  CHECK_THAT(host_seconds(step, "update_tensors"), exactly(all * host.update_tensor.value.value));
}

TEST_CASE("two programs of one step are the same to the last field", "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const OpGraph one = graph_of(variant.step), two = graph_of(variant.step);
    REQUIRE(one.size() == two.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      const Op &a = one.ops()[i], &b = two.ops()[i];
      REQUIRE(std::tie(a.kind, a.stream, a.phase, a.cause, a.rank, a.layer, a.micro_batch, a.name,
                       a.pattern) == std::tie(b.kind, b.stream, b.phase, b.cause, b.rank, b.layer,
                                              b.micro_batch, b.name, b.pattern));
      REQUIRE(std::tie(a.seconds.value, a.bytes.value, a.flops.value) ==
              std::tie(b.seconds.value, b.bytes.value, b.flops.value));
    }
    CHECK(
        std::equal(one.edges().begin(), one.edges().end(), two.edges().begin(), two.edges().end()));
    CHECK(std::equal(one.patterns().begin(), one.patterns().end(), two.patterns().begin(),
                     two.patterns().end()));
    CHECK(std::equal(one.memory().begin(), one.memory().end(), two.memory().begin(),
                     two.memory().end(), [](const MemoryEffect& a, const MemoryEffect& b) {
                       return std::tie(a.op, a.at_start, a.pool, a.rank, a.tensor_class, a.bytes) ==
                              std::tie(b.op, b.at_start, b.pool, b.rank, b.tensor_class, b.bytes);
                     }));
  }
}

TEST_CASE("each micro-batch of very many bears its number", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1);
  step.model.layers = 1;
  step.job.accumulation = 40000;  // beyond 16 bits
  std::int32_t first = 0, last = 0;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  for (const Op& op : graph.ops()) {
    first = std::min(first, op.micro_batch);
    last = std::max(last, op.micro_batch);
  }
  CHECK(first == -1);  // of none: the update
  CHECK(last == 39999);
}
