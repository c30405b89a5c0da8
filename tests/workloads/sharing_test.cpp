// What ranks that share layers or sequences compute, hold and hand each other.
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/strategy/mesh.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double named(const OpGraph& graph, std::string_view name) {
  return sum_named(graph, OpKind::collective, name).bytes;
}

double forward_flops(const TinyStep& step, KernelClass kind) {
  const ModelUnits units = units_of(step.input());
  double sum = 0;
  const auto add = [&](const Unit& unit) {
    for (const KernelRow& row : unit.forward)
      if (row.kind == kind) sum += row.flops;
  };
  for (const auto& layer : units.layers)
    for (const Unit& unit : layer) add(unit);
  for (const Unit& unit : units.head) add(unit);
  return sum;
}

TinyStep tensor_step(std::int64_t ranks, bool sequence) {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.tensor_parallel = {ranks, sequence};
  step.stack.tensor_layers = TensorLayers::overlapped;
  return step;
}

double slot_bytes(const TinyStep& step) {
  return half * step.job.slots() * static_cast<double>(step.model.hidden);
}

}  // namespace

TEST_CASE("ranks that share layers or sequences share the work evenly", "[workloads]") {
  const TinyStep alone = tiny_step(Sharding::zero3);
  for (const KernelClass kind : {KernelClass::gemm, KernelClass::attention}) {
    const double all = forward_flops(alone, kind);
    CHECK_THAT(forward_flops(tensor_step(2, true), kind), exactly(all / 2));
    CHECK_THAT(forward_flops(tensor_step(2, false), kind), exactly(all / 2));
    TinyStep ulysses = alone, ring = alone;
    ulysses.strategy.sequence_parallel.ulysses = 4;
    ring.strategy.sequence_parallel.ring = 4;
    CHECK_THAT(forward_flops(ulysses, kind), exactly(all / 4));
    CHECK_THAT(forward_flops(ring, kind), exactly(all / 4));
  }
}

// Of n slices the last sees the keys of all of them, and half of its own: 2 - 1/n times the mean.
TEST_CASE("all wait for the last slice of a sequence that a ring has cut in order", "[workloads]") {
  TinyStep ring = tiny_step(Sharding::zero3);
  ring.job.documents = {};
  ring.strategy.sequence_parallel.ring = 4;
  const double balanced = forward_flops(ring, KernelClass::attention);
  const double products = forward_flops(ring, KernelClass::gemm);
  ring.strategy.sequence_parallel.slices = RingSlices::contiguous;
  CHECK_THAT(forward_flops(ring, KernelClass::attention), exactly(balanced * (2 - 1.0 / 4)));
  CHECK_THAT(forward_flops(ring, KernelClass::gemm), exactly(products));
  // Documents as short as a slice are all within one.
  ring.job.documents = {static_cast<double>(ring.job.sequence) / 4, 0};
  const double in_order = forward_flops(ring, KernelClass::attention);
  ring.strategy.sequence_parallel.slices = RingSlices::balanced;
  CHECK(in_order < 1.1 * forward_flops(ring, KernelClass::attention));
}

TEST_CASE("a layer of shared tensors sums its parts twice in each pass", "[workloads]") {
  TinyStep step = tensor_step(4, false);
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const double loss = 3 * 4 * step.job.slots();
  // Forward, recomputation and backward; of embedding and head one each, and the loss.
  CHECK_THAT(named(graph_of(step), "sum_parts"), exactly((3 * 2 * layers + 2) * bytes + loss));
  step.strategy.checkpointing = Checkpointing::none;
  CHECK_THAT(named(graph_of(step), "sum_parts"), exactly((2 * 2 * layers + 2) * bytes + loss));
}

TEST_CASE("dividing the tokens between blocks turns a sum into a collection and a scattering",
          "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.strategy.checkpointing = Checkpointing::none;
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const OpGraph graph = graph_of(step);
  // Inputs are kept in pieces and collected once more for the gradient of the weights.
  CHECK_THAT(named(graph, "scatter_parts"), exactly((2 * 2 * layers + 2) * bytes));
  CHECK_THAT(named(graph, "collect_sequence"), exactly((3 * 2 * layers + 3) * bytes));
  const double norms = (2 * layers + 1) * static_cast<double>(step.model.hidden);
  CHECK_THAT(named(graph, "sum_norm_gradients"), exactly(half * norms));
}

TEST_CASE("products that hand over for themselves sum for themselves", "[workloads]") {
  TinyStep step = tensor_step(4, false);
  step.stack.tensor_layers = TensorLayers::plain;
  step.strategy.checkpointing = Checkpointing::none;
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const double together = named(graph_of(step), "sum_parts");
  step.strategy.tensor_parallel.gathers_each = true;
  // Queries, keys, values, gate and up: five gradients of inputs where there were two.
  CHECK_THAT(named(graph_of(step), "sum_parts"), exactly(together + 3 * layers * bytes));
}

TEST_CASE("a compiler collects an input once, and scatters as many gradients", "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.stack.tensor_layers = TensorLayers::plain;
  step.strategy.checkpointing = Checkpointing::none;
  const auto collected = [](const TinyStep& of) { return named(graph_of(of), "collect_sequence"); };
  const auto scattered = [](const TinyStep& of) { return named(graph_of(of), "scatter_parts"); };
  TinyStep each = step;
  each.strategy.tensor_parallel.gathers_each = true;
  TinyStep compiled = each;
  compiled.strategy.compiled = true;
  const double more = 3 * static_cast<double>(step.model.layers) * slot_bytes(step);
  CHECK_THAT(collected(each), exactly(collected(step) + more));
  CHECK_THAT(collected(compiled), exactly(collected(step)));
  CHECK_THAT(scattered(each), exactly(scattered(step) + more));
  CHECK_THAT(scattered(compiled), exactly(scattered(each)));
}

TEST_CASE("pieces travel beside products, as many bytes as at once", "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.stack.tensor_layers = TensorLayers::plain;
  step.strategy.checkpointing = Checkpointing::none;
  TinyStep pieces = step;
  pieces.strategy.tensor_parallel.in_pieces = true;
  const OpGraph whole = graph_of(step), cut = graph_of(pieces);
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  // Two collections and two scatterings a layer forward, two collections backward; each passes on
  // what three of four ranks have. Table and head are not given to the compiler.
  const double moved = 2 * 3 * layers * bytes;
  CHECK_THAT(named(cut, "pass_piece"), exactly(moved * 3 / 4));
  CHECK_THAT(named(cut, "collect_sequence") + named(cut, "scatter_parts") + moved,
             exactly(named(whole, "collect_sequence") + named(whole, "scatter_parts")));
  const auto flops = [](const OpGraph& graph) {
    double sum = 0;
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::compute && op.rank == 0) sum += op.flops.value;
    return sum;
  };
  CHECK_THAT(flops(cut), exactly(flops(whole)));
}

TEST_CASE("what is cast behind its collection comes at once", "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.stack.tensor_layers = TensorLayers::plain;
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.tensor_parallel.in_pieces = true;
  step.strategy.precision.type = ProductType::fp8;
  for (const Products which : {Products::attention, Products::feed_forward})
    step.strategy.precision.products[static_cast<std::size_t>(which)] = true;
  step.strategy.precision.rate.value = Ratio{1};
  step.strategy.precision.collected = 1;  // cast first
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  CHECK_THAT(named(graph_of(step), "pass_piece"), exactly((2 + 4 / 2.0) * layers * bytes * 3 / 4));
  step.strategy.precision.collected = 2;
  CHECK_THAT(named(graph_of(step), "pass_piece"), exactly(2 * layers * bytes * 3 / 4));
}

TEST_CASE("under Megatron's layers pieces travel where nothing else hides them", "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.strategy.checkpointing = Checkpointing::none;
  TinyStep pieces = step;
  pieces.strategy.tensor_parallel.in_pieces = true;
  const OpGraph whole = graph_of(step), cut = graph_of(pieces);
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  // Two collections and two scatterings a layer forward. Backward the two collections of gradients;
  // inputs come again, and their gradients go, beside whole products as before.
  const double moved = 2 * 3 * layers * bytes;
  CHECK_THAT(named(cut, "pass_piece"), exactly(moved * 3 / 4));
  CHECK_THAT(named(cut, "collect_sequence") + named(cut, "scatter_parts") + moved,
             exactly(named(whole, "collect_sequence") + named(whole, "scatter_parts")));
}

TEST_CASE("a whole table or head on each rank costs work and memory, and no hand-over",
          "[workloads]") {
  TinyStep step = tensor_step(4, false);
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const double words = static_cast<double>(step.model.vocabulary * step.model.hidden);
  const double held = step.rank().shares.whole;
  const double flops = forward_flops(step, KernelClass::gemm);
  step.strategy.tensor_parallel.divides_embedding = false;
  CHECK_THAT(step.rank().shares.whole, exactly(held + words * 3 / 4));
  CHECK_THAT(forward_flops(step, KernelClass::gemm), exactly(flops));
  step.strategy.tensor_parallel.divides_head = false;
  CHECK_THAT(step.rank().shares.whole, exactly(held + 2 * words * 3 / 4));
  const double head = 2 * step.job.slots() * words;
  CHECK_THAT(forward_flops(step, KernelClass::gemm), exactly(flops + head * 3 / 4));
  // What is left is what the blocks sum up.
  CHECK_THAT(named(graph_of(step), "sum_parts"), exactly(3 * 2 * layers * bytes));
}

TEST_CASE("a block that overlaps nothing keeps its input whole", "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.strategy.checkpointing = Checkpointing::none;
  step.stack.tensor_layers = TensorLayers::plain;
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const OpGraph graph = graph_of(step);
  // Collected forward, and the gradients of the results backward.
  CHECK_THAT(named(graph, "collect_sequence"), exactly((2 * 2 * layers + 2) * bytes));
  CHECK_THAT(named(graph, "scatter_parts"), exactly((2 * 2 * layers + 2) * bytes));
}

TEST_CASE("tensors that know their pieces are copied on both sides of a collective",
          "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.strategy.checkpointing = Checkpointing::none;
  step.stack.tensor_layers = TensorLayers::dtensor;
  const OpGraph graph = graph_of(step);
  const double layers = static_cast<double>(step.model.layers);
  double copied = 0, copies = 0;
  const auto& elementwise = step.cluster.gpu.elementwise;
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::compute || op.rank != 0) continue;
    if (graph.names()[index(op.name)] != "regroup") continue;
    copied +=
        (op.seconds.value - elementwise.start.value.value) * elementwise.bandwidth.value.value;
    ++copies;
  }
  // As many as there are collections and scatterings, each read once and written once.
  CHECK(copies == 2 * (2 * 2 * layers + 2));
  CHECK_THAT(copied, exactly(2 * copies * slot_bytes(step)));
}

TEST_CASE("ranks that share a product share the work of both products of its backward pass",
          "[workloads]") {
  // Of the first product of a block, whose halves may run apart, as of the others.
  const auto busy = [](const TinyStep& step, std::string_view name) {
    const OpGraph graph = graph_of(step);
    double seconds = 0, flops = 0;
    for (const Op& op : graph.ops()) {
      if (op.kind != OpKind::compute || op.phase != Phase::backward || op.rank != 0) continue;
      if (graph.names()[index(op.name)] != name) continue;
      seconds += op.seconds.value;
      flops += op.flops.value;
    }
    return std::pair{seconds, flops};
  };
  for (const TensorLayers layers :
       {TensorLayers::plain, TensorLayers::overlapped, TensorLayers::dtensor}) {
    TinyStep step = tensor_step(2, true);
    step.strategy.checkpointing = Checkpointing::none;
    step.stack.tensor_layers = layers;
    const auto gate = busy(step, "mlp.gate_proj"), up = busy(step, "mlp.up_proj");
    CHECK_THAT(gate.first, exactly(up.first));
    CHECK_THAT(gate.second, exactly(up.second));
  }
}

TEST_CASE("products that collect a block's input each for themselves collect it five times a layer",
          "[workloads]") {
  TinyStep step = tensor_step(4, true);
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.tensor_parallel.gathers_each = true;
  const double layers = static_cast<double>(step.model.layers), bytes = slot_bytes(step);
  const OpGraph graph = graph_of(step);
  // Queries, keys and values, gate and up; what they collected is still there in the backward pass,
  // which collects the gradients of both results and scatters those of five inputs.
  CHECK_THAT(named(graph, "collect_sequence"), exactly((7 * layers + 3) * bytes));
  CHECK_THAT(named(graph, "scatter_parts"), exactly((7 * layers + 2) * bytes));
}

TEST_CASE("a rank holds its part of the shared tensors, sharded over the others", "[workloads]") {
  const TinyStep alone = tiny_step(Sharding::fsdp);
  TinyStep step = alone;
  step.strategy.tensor_parallel.size = 2;
  const double norms = static_cast<double>((2 * alone.model.layers + 1) * alone.model.hidden);
  // Everything but the norms, which each rank has, is there once among all ranks.
  CHECK_THAT(named(graph_of(step), "gather_group") - named(graph_of(alone), "gather_group") / 2,
             exactly(half * (2 * norms - static_cast<double>(alone.model.hidden)) / 2));
}

TEST_CASE("heads are swapped for sequences four times forward and four times backward",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.checkpointing = Checkpointing::none;
  const auto& a = step.model.attention;
  const double layers = static_cast<double>(step.model.layers);
  const auto swapped = [&](std::int64_t ranks, double key_heads) {
    step.strategy.sequence_parallel.ulysses = ranks;
    const double head =
        half * step.job.slots() / static_cast<double>(ranks) * static_cast<double>(a.head_dim);
    const Sum sum = sum_named(graph_of(step), OpKind::collective, "swap_heads");
    CHECK(sum.count == 8 * layers);
    CHECK_THAT(sum.bytes,
               exactly(2 * layers * head * (2 * static_cast<double>(a.heads) + 2 * key_heads)));
  };
  swapped(2, 2);
  swapped(4, 4);  // two heads of keys and values, each held twice
}

TEST_CASE("keys and values go round a ring under the blocks of attention", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.sequence_parallel.ring = 4;
  const auto& a = step.model.attention;
  const double held = step.job.slots() / 4 * static_cast<double>(2 * a.kv_heads * a.head_dim);
  const double layers = static_cast<double>(step.model.layers);
  // Three passes forward, three backward, and their fp32 gradients all the way home.
  CHECK_THAT(named(graph_of(step), "pass_keys"),
             exactly(layers * held * (3 * half + 3 * half + 4 * 4)));
}

TEST_CASE("ranks that share come next to each other, data outside", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(), 2, 8);
  step.strategy.tensor_parallel.size = 2;
  step.strategy.sequence_parallel = {.ulysses = 2, .ring = 2};
  const Mesh mesh = mesh_of(step.strategy, step.cluster);
  CHECK(to_text(mesh) == "data 2 x CP 2 x Ulysses 2 x TP 2");
  CHECK(mesh.shard == 8);
  CHECK(strided_groups(8, 2, 2) == std::vector<Group>{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  const StepProgram program = build_step(step.input(), Folding::off);
  for (const Op& op : program.graph.ops())
    if (op.pattern != no_pattern && program.graph.names()[index(op.name)] == "pass_keys") {
      const auto& members = program.graph.patterns()[index(op.pattern)].members;
      CHECK(members.size() == 2);
      CHECK(members[1] - members[0] == 4);
    }
  CHECK_THAT(program.tokens, exactly(2 * step.job.slots()));
}
