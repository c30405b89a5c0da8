// What PyTorch's sharding moves, keeps and waits for, counted.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/resident.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double gathered(const TinyStep& step) {
  return sum_named(graph_of(step), OpKind::collective, "gather_group").bytes;
}

double reduced(const TinyStep& step) {
  return sum_named(graph_of(step), OpKind::collective, "reduce_group").bytes;
}

TinyStep flat_step() {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.fsdp.version = 1;
  step.strategy.fsdp.root_group = true;
  return step;
}

// Highest sum of a class while the replay goes on, on one rank.
double highest(const OpGraph& graph, std::string_view tensor_class) {
  double now = 0, most = 0;
  for (const MemoryEffect& effect : graph.memory()) {
    if (effect.rank != 0 || graph.names()[index(effect.tensor_class)] != tensor_class) continue;
    now += effect.bytes;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("layers gather once forward and once backward, the head stays in between",
          "[workloads]") {
  const auto accumulation = GENERATE(1, 3);
  TinyStep step = tiny_step(Sharding::fsdp);
  step.job.accumulation = accumulation;
  const Elements e = elements_of(step);
  const double hidden = static_cast<double>(step.model.hidden);
  const double head = hidden * static_cast<double>(step.model.vocabulary) + hidden;  // and its norm
  CHECK_THAT(gathered(step), exactly(accumulation * half * (2 * e.total - head)));
  step.strategy.fsdp.root_group = true;
  const double outside = 2 * head - hidden;
  CHECK_THAT(gathered(step), exactly(accumulation * half * (2 * e.total - outside)));
  // A root that is given up between the passes is gathered again.
  step.strategy.fsdp.reshard_root = true;
  CHECK_THAT(gathered(step), exactly(accumulation * half * 2 * e.total));
  step.strategy.fsdp.reshard_root = false;
  // Kept until their backward pass, everything is gathered once.
  step.strategy.fsdp.reshard_after_forward = false;
  step.strategy.fsdp.root_group = false;
  CHECK_THAT(gathered(step), exactly(accumulation * half * e.total));
}

TEST_CASE("forward, what was gathered of a layer stays until the next one is cut apart",
          "[workloads]") {
  const TinyStep step = tiny_step(Sharding::fsdp);
  const double layer = half * elements_of(step).inner / static_cast<double>(step.model.layers);
  const OpGraph graph = graph_of(step);
  CHECK(highest(graph, "arrived") >= 2 * layer);
  double left = 0;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == 0 && graph.names()[index(effect.tensor_class)] == "arrived")
      left += effect.bytes;
  CHECK_THAT(left, exactly(0));
}

TEST_CASE("a root that was given up comes back when the loss has run backward", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.fsdp.root_group = step.strategy.fsdp.reshard_root = true;
  const OpGraph graph = graph_of(step);
  std::vector<std::string> order;  // backward, of rank 0
  for (const Op& op : graph.ops()) {
    const std::string name(graph.names()[index(op.name)]);
    const bool told = name == "loss" || name == "lm_head" || name == "gather_group";
    if (op.rank == 0 && op.phase == Phase::backward && told) order.push_back(name);
  }
  const auto first = [&](std::string_view name) { return std::ranges::find(order, name); };
  CHECK(first("loss") < first("gather_group"));
  CHECK(first("gather_group") < first("lm_head"));
  CHECK(first("lm_head") != order.end());
}

TEST_CASE("shards that are gathered in place are not copied, whatever is sent", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  const auto copies = [&](std::string_view name) {
    return sum_named(graph_of(step), OpKind::compute, name).count;
  };
  const double sent = gathered(step), out = copies("copy_out"), in = copies("copy_in");
  CHECK(out > 0);
  step.stack.fsdp_in_place = true;
  CHECK_THAT(gathered(step), exactly(sent));
  CHECK(copies("copy_out") == 0);
  CHECK(copies("copy_in") == in);  // gradients are put together as before
}

TEST_CASE("tied embedding and head are one group, gathered once", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.model.tied_embeddings = true;
  const Elements e = elements_of(step);
  const double hidden = static_cast<double>(step.model.hidden);
  const double outside = hidden * static_cast<double>(step.model.vocabulary) + hidden;
  CHECK_THAT(gathered(step), exactly(half * (2 * (e.total - outside) + outside)));
}

TEST_CASE("experts that are left to the root are gathered once, held, and reduced once",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(8), 1, 8);
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.experts.parallel = GENERATE(1, 2);
  const auto count = [&](std::string_view name) {
    return sum_named(graph_of(step), OpKind::collective, name).count;
  };
  const double all = elements_of(step).total, before = gathered(step),
               gathers = count("gather_group"), held = highest(graph_of(step), "gathered"),
               sent = reduced(step);
  step.strategy.fsdp.root_experts = true;
  CHECK(gathered(step) < before);  // not once more for the backward pass
  CHECK(gathered(step) >= half * all);
  CHECK(count("gather_group") <= gathers + 1);
  CHECK(highest(graph_of(step), "gathered") > held);
  CHECK_THAT(reduced(step), exactly(sent));
}

TEST_CASE("gradients travel in the dtype that is asked for, each micro-batch or once",
          "[workloads]") {
  TinyStep step = GENERATE(tiny_step(Sharding::fsdp), flat_step());
  step.job.accumulation = 3;
  const double total = elements_of(step).total;
  CHECK_THAT(reduced(step), exactly(3 * 4 * total));
  step.strategy.fsdp.reduce = FsdpDtype::bf16;
  CHECK_THAT(reduced(step), exactly(3 * half * total));
  step.strategy.fsdp.sync_each_batch = false;
  CHECK_THAT(reduced(step), exactly(half * total));
}

TEST_CASE("parameters that are gathered in 32 bits travel twice as wide and are cast behind",
          "[workloads]") {
  TinyStep step = GENERATE(tiny_step(Sharding::fsdp), flat_step());
  const double usual = gathered(step), before = seconds_of(step);
  step.strategy.fsdp.gather = FsdpDtype::fp32;
  CHECK_THAT(gathered(step), exactly(2 * usual));
  CHECK(seconds_of(step) >= before);
}

TEST_CASE("a flat gradient is put together, cast and divided before it is summed up",
          "[workloads]") {
  TinyStep step = flat_step();
  const auto seconds = [&] {
    const OpGraph graph = graph_of(step);
    double sum = 0, kernels = 0;
    for (const Op& op : graph.ops()) {
      if (op.kind != OpKind::compute || graph.names()[index(op.name)] != "flatten") continue;
      if (op.rank != 0) continue;
      sum += op.seconds.value;
      kernels += step.strategy.fsdp.reduce == FsdpDtype::bf16 ? 2 : 3;
    }
    return sum - kernels * step.cluster.gpu.elementwise.start.value.value;
  };
  const double streamed =
      elements_of(step).total / step.cluster.gpu.elementwise.bandwidth.value.value;
  CHECK_THAT(seconds(), exactly((2 * half + (half + 4) + 2 * 4) * streamed));
  step.strategy.fsdp.reduce = FsdpDtype::bf16;
  CHECK_THAT(seconds(), exactly((2 * half + 2 * half) * streamed));
}

TEST_CASE("gradients that wait for the boundary are held whole", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.job.accumulation = 2;
  const double total = elements_of(step).total;
  const double ranks = step.cluster.ranks();
  CHECK_THAT(highest(graph_of(step), "own_gradients"), exactly(4 * total / ranks));
  // The last reduction finds only its own group's still whole.
  const auto within = [&](double whole) {
    const double most = highest(graph_of(step), "gradients");
    return most >= whole * total * (1 - 1e-12) && most <= (whole + 4 / ranks) * total;
  };
  step.strategy.fsdp.sync_each_batch = false;
  CHECK(within(4));
  step.strategy.fsdp.version = 1;  // adds them up in 16 bits
  CHECK(within(half));
}

TEST_CASE("a hybrid shard gathers inside, and sums its shard across", "[workloads]") {
  TinyStep step = tiny_step(Sharding::hsdp, tiny_model(), 2, 4);
  const double total = elements_of(step).total;
  const double flat = gathered(step);
  step.strategy.fsdp.shard = 2;  // four copies
  const StepProgram program = build_step(step.input(), Folding::off);
  CHECK_THAT(sum_named(program.graph, OpKind::collective, "gather_group").bytes, exactly(flat));
  CHECK_THAT(sum_named(program.graph, OpKind::collective, "reduce_group").bytes,
             exactly(4 * total));
  CHECK_THAT(sum_named(program.graph, OpKind::collective, "reduce_replicas").bytes,
             exactly(4 * total / 2));
  for (const Op& op : program.graph.ops()) {
    if (op.pattern == no_pattern) continue;
    const auto& members = program.graph.patterns()[index(op.pattern)].members;
    const std::string& name = program.graph.names()[index(op.name)];
    if (name == "gather_group" || name == "reduce_group") CHECK(members.size() == 2);
    if (name == "reduce_replicas") CHECK(members.size() == 4);
  }
  // One copy is no hybrid.
  step.strategy.fsdp.shard = 8;
  CHECK(sum_named(graph_of(step), OpKind::collective, "reduce_replicas").count == 0);
}

TEST_CASE("bytes per parameter: sixteen kept in fp32, eight in 16 bits", "[workloads]") {
  TinyStep step = tiny_step(Sharding::hsdp, tiny_model(), 2, 4);
  const double total = elements_of(step).total;
  step.strategy.fsdp.shard = 4;
  CHECK_THAT(states_of(step.rank()), exactly(16 * total / 4));
  CHECK_THAT(resident_of(step.rank()).in(Pool::device), exactly(12 * total / 4));
  step.strategy.master_weights = false;
  CHECK_THAT(states_of(step.rank()), exactly(8 * total / 4));
}

TEST_CASE("the limit on gathers holds the host back, and costs no device memory", "[workloads]") {
  TinyStep step = flat_step();
  step.model.layers = 8;
  const auto waits = [&] { return sum_named(graph_of(step), OpKind::host, "gather_limit").count; };
  CHECK(waits() > 0);
  step.strategy.fsdp.limit_all_gathers = false;
  CHECK(waits() == 0);
  step.strategy.fsdp.limit_all_gathers = true;
  step.strategy.fsdp.version = 2;
  CHECK(waits() == 0);
}

TEST_CASE("adapters that are units hold the host back one after the other", "[workloads]") {
  TinyStep step = flat_step();
  step.model.layers = 8;
  step.strategy.lora = {4, LoraTargets::linear};
  const auto waits = [&] { return sum_named(graph_of(step), OpKind::host, "gather_limit").count; };
  const double layers = waits();
  step.strategy.fsdp.adapter_units = true;
  CHECK(waits() > layers + 8 * 7 * 2 * 2);  // layers, adapters, matrices, passes
}

TEST_CASE("asking for the next group early never makes a step longer", "[workloads]") {
  TinyStep step = flat_step();
  step.model.layers = 6;
  const double none = [&] {
    TinyStep alone = step;
    alone.strategy.fsdp.backward_prefetch = FsdpPrefetch::none;
    return seconds_of(alone);
  }();
  TinyStep post = step;
  post.strategy.fsdp.backward_prefetch = FsdpPrefetch::post;
  CHECK(seconds_of(post) <= none * (1 + 1e-9));
  CHECK(seconds_of(step) <= seconds_of(post) * (1 + 1e-9));
  TinyStep forward = step;
  forward.strategy.fsdp.forward_prefetch = true;
  CHECK(seconds_of(forward) <= seconds_of(step) * (1 + 1e-9));
}
