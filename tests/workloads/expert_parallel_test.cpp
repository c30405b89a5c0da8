// Experts spread over ranks under FSDP and under a distributed optimizer: what is gathered,
// reduced, sent and held.
#include <cmath>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/layers/routing.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/strategy/mesh.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

TinyStep spread(Sharding sharding, std::int64_t ranks) {
  TinyStep step = tiny_step(sharding, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.experts.parallel = ranks;
  return step;
}

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double bytes_of(const TinyStep& step, std::string_view name) {
  return sum_named(graph_of(step), OpKind::collective, name).bytes;
}

// Rows that the tokens of a rank make at its experts.
double routed_bytes(const TinyStep& step) {
  return half * step.job.slots() * static_cast<double>(step.model.experts->per_token) *
         static_cast<double>(step.model.hidden);
}

double held(const TinyStep& step, Held held_class) {
  double sum = 0;
  for (const Holding& holding : resident_of(step.rank()).holdings)
    if (holding.held == held_class) sum += holding.bytes;
  return sum;
}

double expert_flops(const TinyStep& step) {
  double sum = 0;
  for (const auto& layer : units_of(step.input()).layers)
    for (const Unit& unit : layer)
      if (unit.name == "mlp.experts") sum += flops_of(unit.forward);
  return sum;
}

}  // namespace

TEST_CASE("FSDP gathers and scatters experts among the ranks that hold the same ones",
          "[workloads]") {
  const auto ranks = GENERATE(1, 2, 4, 8);
  const TinyStep step = spread(Sharding::fsdp, ranks);
  const Elements e = elements_of(step);
  const double hidden = static_cast<double>(step.model.hidden);
  const double head = hidden * static_cast<double>(step.model.vocabulary) + hidden;
  const double others = e.total - e.experts;
  // With as many ranks as there are, nobody else holds an expert.
  const double shared = ranks == 8 ? 0 : e.experts / ranks;
  CAPTURE(ranks);
  CHECK_THAT(bytes_of(step, "gather_group"), exactly(half * (2 * (others + shared) - head)));
  CHECK_THAT(bytes_of(step, "reduce_group"), exactly(4 * (others + shared)));
}

TEST_CASE("whatever ranks hold of the experts, all states are shared by all", "[workloads]") {
  const auto sharding = GENERATE(Sharding::fsdp, Sharding::zero1);
  const TinyStep alone = spread(sharding, 1);
  const double all = elements_of(alone).total;
  for (const std::int64_t ranks : {1, 2, 8}) {
    CAPTURE(ranks);
    CHECK_THAT(held(spread(sharding, ranks), Held::optimizer), exactly(8 * all / 8));
  }
  // Under tensor parallelism too, whether or not single experts are divided.
  TinyStep whole = spread(sharding, 4), divided = whole;
  whole.strategy.tensor_parallel.size = divided.strategy.tensor_parallel.size = 2;
  whole.strategy.experts.tensor = 1;
  CHECK_THAT(held(whole, Held::optimizer), exactly(held(divided, Held::optimizer)));
}

TEST_CASE("tokens are sent to their experts and back in every pass", "[workloads]") {
  const auto sharding = GENERATE(Sharding::fsdp, Sharding::zero1);
  const auto checkpointing = GENERATE(Checkpointing::full, Checkpointing::none);
  TinyStep step = spread(sharding, 4);
  step.strategy.checkpointing = checkpointing;
  const double passes = checkpointing == Checkpointing::full ? 3 : 2;
  const double layers = static_cast<double>(step.model.layers);
  const Sum sum = sum_of(graph_of(step), OpKind::collective, Cause::moe_all_to_all);
  CHECK(sum.count == 2 * passes * layers);
  CHECK_THAT(sum.bytes, exactly(2 * passes * layers * routed_bytes(step)));
  // Ranks tell each other how much comes, forward and when it is computed again.
  CHECK(sum_named(graph_of(step), OpKind::collective, "counts").count == (passes - 1) * layers);
}

TEST_CASE("micro-batches that take turns send the same, and hide some of it", "[workloads]") {
  TinyStep step = spread(Sharding::zero1, 4);
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.distributed = {.used = true};
  step.job.accumulation = 4;
  TinyStep turns = step;
  turns.strategy.experts.overlaps = true;
  turns.strategy.experts.delays_weights = GENERATE(false, true);
  const auto sent = [](const TinyStep& of) {
    return sum_of(graph_of(of), OpKind::collective, Cause::moe_all_to_all);
  };
  CHECK(sent(turns).count == sent(step).count);
  CHECK_THAT(sent(turns).bytes, exactly(sent(step).bytes));
  const auto flops = [](const TinyStep& of) {
    double sum = 0;
    const OpGraph graph = graph_of(of);
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::compute) sum += op.flops.value;
    return sum;
  };
  CHECK_THAT(flops(turns), exactly(flops(step)));
}

TEST_CASE("into buffers of fixed size nobody says how much comes", "[workloads]") {
  TinyStep step = spread(Sharding::zero1, 4);
  CHECK(sum_named(graph_of(step), OpKind::collective, "counts").count > 0);
  step.strategy.experts.dispatcher = Dispatcher::hybridep;
  CHECK(sum_named(graph_of(step), OpKind::collective, "counts").count == 0);
}

TEST_CASE("the most uneven routing so far takes memory, not time", "[workloads]") {
  TinyStep step = spread(Sharding::fsdp, 1);
  step.strategy.experts.kernel = MoeKernel::padded;
  step.strategy.experts.skew = 0.5;
  TinyStep worse = step;
  worse.strategy.experts.peak_skew = 1;
  CHECK(expert_flops(worse) == expert_flops(step));
  const auto kept = [](const TinyStep& of) {
    double sum = 0;
    for (const auto& layer : units_of(of.input()).layers)
      for (const Unit& unit : layer)
        if (unit.name == "mlp.experts") sum += unit.memory.acted;
    return sum;
  };
  CHECK_THAT(kept(worse), exactly(kept(step) * imbalance(8, 1) / imbalance(8, 0.5)));
}

TEST_CASE("the busiest rank is waited for", "[workloads]") {
  TinyStep even = spread(Sharding::fsdp, 4), skewed = even;
  skewed.strategy.experts.skew = 1;
  // Two experts a rank: what ranks get spreads less than what experts get.
  const double busiest = imbalance(4, 1 / std::sqrt(2.0));
  CHECK(busiest < imbalance(8, 1));
  CHECK_THAT(bytes_of(skewed, "all_to_all"), exactly(busiest * bytes_of(even, "all_to_all")));
  CHECK_THAT(expert_flops(skewed), exactly(busiest * expert_flops(even)));
}

TEST_CASE("tokens beyond what an expert takes are dropped", "[workloads]") {
  TinyStep even = spread(Sharding::fsdp, 4), skewed = even;
  skewed.strategy.experts.skew = 1;
  const double all = expert_flops(skewed);
  skewed.strategy.experts.drops_above = 100;  // so much no expert gets
  CHECK_THAT(expert_flops(skewed), exactly(all));
  skewed.strategy.experts.drops_above = 1;
  CHECK(kept_share(8, 1, 1) < 1);
  CHECK(expert_flops(skewed) < all);
  CHECK(expert_flops(skewed) <= expert_flops(even) * (1 + 1e-12));
  even.strategy.experts.drops_above = 1;
  CHECK(kept_share(8, 0, 1) == 1);
  CHECK_THAT(bytes_of(even, "all_to_all"),
             exactly(bytes_of(spread(Sharding::fsdp, 4), "all_to_all")));
}

TEST_CASE("a padded batch is as long as the busiest expert needs", "[workloads]") {
  TinyStep even = spread(Sharding::fsdp, 1);
  even.strategy.experts.kernel = MoeKernel::padded;
  TinyStep skewed = even;
  skewed.strategy.experts.skew = 1;
  CHECK_THAT(expert_flops(even), exactly(expert_flops(spread(Sharding::fsdp, 1))));
  CHECK_THAT(expert_flops(skewed), exactly(imbalance(8, 1) * expert_flops(even)));
}

TEST_CASE("ranks that share tensors hold whole experts or pieces of all", "[workloads]") {
  TinyStep alone = spread(Sharding::zero1, 4);
  TinyStep pieces = alone;
  pieces.strategy.tensor_parallel.size = 2;
  TinyStep whole = pieces;
  whole.strategy.experts.tensor = 1;
  // Either way a rank has half the tokens between blocks, and half the work.
  CHECK_THAT(bytes_of(whole, "all_to_all"), exactly(bytes_of(alone, "all_to_all") / 2));
  CHECK_THAT(bytes_of(pieces, "all_to_all"), exactly(bytes_of(alone, "all_to_all") / 2));
  CHECK_THAT(expert_flops(whole), exactly(expert_flops(alone) / 2));
  CHECK_THAT(expert_flops(pieces), exactly(expert_flops(alone) / 2));
  // Only pieces have to be multiplied with the tokens of both.
  CHECK(bytes_of(whole, "collect_tokens") == 0);
  const double passes = 3, layers = static_cast<double>(alone.model.layers);
  CHECK_THAT(bytes_of(pieces, "collect_tokens"), exactly(passes * layers * routed_bytes(alone)));
  const Mesh mesh = mesh_of(whole.strategy, whole.cluster);
  CHECK(mesh.experts * mesh.expert_tensor * mesh.expert_shard == mesh.ranks);
}

TEST_CASE("tokens are collected among pieces of experts when they have come", "[workloads]") {
  TinyStep step = spread(Sharding::zero1, 4);
  step.strategy.tensor_parallel.size = step.strategy.experts.tensor = 2;
  const OpGraph graph = graph_of(step);
  const auto is = [&](std::size_t op, std::string_view name) {
    return graph[OpId(op)].kind == OpKind::collective &&
           graph.names()[index(graph[OpId(op)].name)] == name;
  };
  // Of every operation the last exchange that it waits for, itself or through others.
  std::vector<std::size_t> awaited(graph.size(), 0);
  std::size_t last = 0, collected = 0;
  for (std::size_t op = 0; op < graph.size(); ++op) {
    for (const OpId before : graph.predecessors(OpId(op)))
      awaited[op] = std::max(awaited[op], awaited[index(before)]);
    if (is(op, "all_to_all")) awaited[op] = last = op;
    if (!is(op, "collect_tokens")) continue;
    ++collected;
    CHECK(awaited[op] == last);
  }
  CHECK(collected > 0);
}

TEST_CASE("ranks that repeat the same rows share nothing but experts", "[workloads]") {
  // Eight ranks, four of which hold different experts: as two ranks with all experts do it.
  TinyStep few = spread(Sharding::fsdp, 1), same = spread(Sharding::fsdp, 4);
  few.cluster.gpus_used = 2;
  same.strategy.experts.same_rows = true;
  const StepProgram alone = build_step(few.input(), Folding::automatic);
  const StepProgram repeated = build_step(same.input(), Folding::automatic);
  CHECK(repeated.tokens == alone.tokens);
  CHECK_THAT(repeated.flops.total() * 4, exactly(alone.flops.total()));
  const Mesh mesh = mesh_of(same.strategy, same.cluster);
  CHECK(mesh.data() == 2);
  CHECK(mesh.shard == 2);
  CHECK(mesh.expert_shard == 2);
  // Its part of the experts gets the tokens of all four.
  CHECK_THAT(expert_flops(same), exactly(expert_flops(few)));
  CHECK_THAT(bytes_of(same, "all_to_all"),
             exactly(2 * 3 * static_cast<double>(same.model.layers) * routed_bytes(same)));
  const double experts = elements_of(few).experts;
  const double others = elements_of(few).total - experts;
  CHECK_THAT(same.rank().shares.shard, exactly(others / 2 + experts / 4 / 2));
}

TEST_CASE("ranks that repeat a layer's tokens run whole experts on them", "[workloads]") {
  TinyStep alone = spread(Sharding::fsdp, 1), tensor = alone;
  tensor.strategy.tensor_parallel.size = 2;
  tensor.strategy.tensor_parallel.sequence = false;
  tensor.strategy.experts.tensor = 1;
  CHECK_THAT(expert_flops(tensor), exactly(expert_flops(alone)));
  // Attention alone sums parts up; the table and the loss do it as elsewhere.
  const double layers = static_cast<double>(alone.model.layers);
  const double bytes = half * alone.job.slots() * static_cast<double>(alone.model.hidden);
  const double loss = 3 * 4 * alone.job.slots();
  CHECK_THAT(bytes_of(tensor, "sum_parts"), exactly((3 * layers + 2) * bytes + loss));
}

TEST_CASE("adapters beside experts are trained, the experts are not", "[workloads]") {
  TinyStep step = spread(Sharding::fsdp, 1);
  step.strategy.lora = {4, LoraTargets::all};
  const double h = static_cast<double>(step.model.hidden);
  const double w = static_cast<double>(step.model.experts->width), n = 8, rank = 4;
  double adapters = 0;
  for (const auto& layer : units_of(step.input()).layers)
    for (const Unit& unit : layer) {
      if (unit.name == "mlp.experts") CHECK_FALSE(unit.trained);
      if (unit.name == "mlp.experts.lora") adapters += unit.trained_elements();
    }
  CHECK_THAT(adapters, exactly(static_cast<double>(step.model.layers) * n * 3 * rank * (h + w)));
  // One expert after the other, they are as many.
  const auto trained = [&](LoraTargets targets) {
    step.strategy.experts.kernel = MoeKernel::loop;
    step.strategy.lora.targets = targets;
    return step.rank().shares.trained;
  };
  CHECK_THAT(trained(LoraTargets::all) - trained(LoraTargets::linear), exactly(adapters));
}

TEST_CASE("kernels that send a token once send fewer rows", "[workloads]") {
  // Two of eight experts: of two nodes with four each, a choice misses one in 12 of 56 cases twice.
  CHECK_THAT(parts_met(8, 2, 2), exactly(2 * (1 - 12.0 / 56)));
  CHECK(parts_met(8, 2, 1) == 1);
  CHECK_THAT(parts_met(8, 2, 8), exactly(2.0));  // an expert each: none is shared
  // Two of four groups of two: one in six choices has both of a node's groups, four have one of
  // them.
  CHECK_THAT(parts_met(8, 2, 2, {2, 4}), exactly(2 * (1.0 / 6 + 4.0 / 6 * (1 - 2.0 / 12))));
  CHECK_THAT(parts_met(8, 2, 4, {2, 4}), exactly(4 / 2.0 * (1 - 2.0 / 12)));
  CHECK_THAT(parts_met(8, 2, 8, {2, 4}), exactly(2.0));
  CHECK_THAT(parts_met(8, 2, 2, {1, 4}), exactly(1.0));  // side by side
  CHECK_THAT(parts_met(8, 2, 8, {1, 4}), exactly(2.0));
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(8), 2, 4);
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.experts.parallel = 8;
  const double layers = static_cast<double>(step.model.layers), ways = 2 * 3;
  const double once = half * step.job.slots() * static_cast<double>(step.model.hidden);
  const double copies = bytes_of(step, "all_to_all");
  step.strategy.experts.dispatcher = Dispatcher::deepep;
  CHECK(bytes_of(step, "all_to_all") == 0);
  CHECK_THAT(bytes_of(step, "send_to_nodes"), exactly(ways * layers * once * parts_met(8, 2, 2)));
  CHECK_THAT(bytes_of(step, "send_to_ranks"), exactly(copies));
  step.strategy.experts.neighbours = true;
  CHECK_THAT(bytes_of(step, "send_to_nodes"), exactly(ways * layers * once));
}

TEST_CASE("kernels that send a token once leave nothing to put in order before", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.experts.parallel = 4;
  step.stack.fused.permute = true;
  const auto moved = [&](Dispatcher dispatcher) {
    step.strategy.experts.dispatcher = dispatcher;
    double bytes = 0;
    const ModelUnits units = units_of(step.input());
    for (const Unit& unit : units.layers.front())
      for (const KernelRow& row : unit.forward)
        if (row.name == "gather" || row.name == "order" || row.name == "scatter_add")
          bytes += row.bytes;
    return bytes / (half * step.job.slots() * static_cast<double>(step.model.hidden));
  };
  // Two of eight experts, over four ranks with two each.
  const double ranks = parts_met(8, 2, 4);
  CHECK_THAT(ranks, exactly(4 * (1 - 30.0 / 56)));
  // Read and written by the sender, twice around the experts, and summed where they came from.
  CHECK_THAT(moved(Dispatcher::all_to_all), exactly(2.0 * 2 + 2 * 2 * 2 + (2 + 1)));
  // From what arrives to the rows of experts, and back.
  CHECK_THAT(moved(Dispatcher::deepep), exactly(2 * (ranks + 2)));
}
