// Device memory that the framework keeps, and what a step does when it is full.
#include "workloads/program/allocator.hpp"

#include <algorithm>
#include <array>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/resident.hpp"

using namespace stepsim;

namespace {

constexpr AllocatingStreams by_stream() {
  AllocatingStreams streams{};
  streams[static_cast<std::size_t>(Held::gathered)] = 1;
  streams[static_cast<std::size_t>(Held::reduce_input)] = 2;
  return streams;
}

// With room for so much more than the most that is used at once.
TinyStep with_room(double room) {
  TinyStep step = tiny_step(Sharding::zero2);
  step.strategy.zero.overlap_comm = true;  // reductions have a stream of their own
  auto& memory = step.cluster.gpu.memory;
  memory.library.value = Bytes{0};
  memory.usable.value = Bytes{room};
  return step;
}

StepProgram written(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic);
}

// The most that is used at once, and what the allocator would keep with all the room it wants.
struct Needs {
  double used = 0, kept = 0;
};
Needs needs_of(const TinyStep& step) {
  const StepProgram program = written(step);
  const AllocatingStreams streams = allocating_streams(step.strategy);
  double now = program.resident.in(Pool::device);
  Needs needs{now, 0};
  std::array<double, Allocator::streams> each{now, 0, 0}, most = each;
  for (const MemoryEffect& effect : program.graph.memory()) {
    if (effect.pool != Pool::device || effect.rank != 0) continue;
    const std::string& name = program.graph.names()[index(effect.tensor_class)];
    const auto held = std::find(held_names.begin(), held_names.end(), name) - held_names.begin();
    const std::size_t stream = streams[static_cast<std::size_t>(held)];
    now += effect.bytes;
    each[stream] += effect.bytes;
    needs.used = std::max(needs.used, now);
    most[stream] = std::max(most[stream], each[stream]);
  }
  for (const double bytes : most) needs.kept += bytes;
  return needs;
}

}  // namespace

TEST_CASE("what is freed serves the same stream, and no other", "[workloads]") {
  Allocator allocator(100, 40, by_stream());
  CHECK(allocator.take(Held::activations, 30).mapped == 30);
  allocator.give(Held::activations, 30);
  CHECK(allocator.take(Held::temporary, 20).mapped == 0);
  CHECK(allocator.take(Held::gathered, 10).mapped == 10);
  CHECK(allocator.mapped() == 80);
  CHECK_FALSE(allocator.has_returned());
}

TEST_CASE("a request that finds no room gets what lies idle, all of it is given back",
          "[workloads]") {
  Allocator allocator(100, 40, by_stream());
  allocator.take(Held::activations, 50);
  allocator.give(Held::activations, 45);
  const Allocator::Remapped change = allocator.take(Held::reduce_input, 20);
  CHECK(change.returned == 45);
  CHECK(change.mapped == 20);
  CHECK(allocator.mapped() == 65);
  CHECK(allocator.has_returned());
}

TEST_CASE("what does not fit at all gives nothing back", "[workloads]") {
  Allocator allocator(100, 40, by_stream());
  allocator.take(Held::activations, 50);
  const Allocator::Remapped change = allocator.take(Held::reduce_input, 20);
  CHECK(change.returned == 0);
  allocator.give(Held::activations, 50);
  CHECK(allocator.take(Held::gathered, 30).returned == 0);
  CHECK_FALSE(allocator.has_returned());
}

TEST_CASE("a step on a full device maps memory anew, one with room does not", "[workloads]") {
  const Needs needs = needs_of(with_room(1e15));
  REQUIRE(needs.kept > needs.used);
  const auto stops = [](const StepProgram& program) {
    return sum_named(program.graph, OpKind::host, "map_memory").count;
  };
  const TinyStep roomy = with_room(needs.kept), full = with_room(needs.used);
  CHECK(stops(written(roomy)) == 0);
  CHECK(written(roomy).resident.mapped_before_update == 0);
  const StepProgram program = written(full);
  CHECK(stops(program) > 0);
  CHECK(program.resident.mapped_before_update > 0);
  CHECK(program.resident.mapped_before_update <= needs.used);
  CHECK(seconds_of(full) > seconds_of(roomy));
}

TEST_CASE("memory that is mapped piece by piece costs by its own rate", "[workloads]") {
  const double used = needs_of(with_room(1e15)).used;
  TinyStep step = with_room(used);
  step.stack.operators.allocator = {.map = 1e6, .allocate = 1e9};
  const double blocks = seconds_of(step);
  step.strategy.expandable_segments = true;
  CHECK(seconds_of(step) > blocks);
}

TEST_CASE("with expandable segments no memory is lost between blocks", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.stack.allocator_slack = {
      .value = Ratio{0.05}, .low = Ratio{0.03}, .high = Ratio{0.08}, .source = "a test"};
  CHECK(slack_of(step.input()).value.value == 0.05);
  step.strategy.expandable_segments = true;
  CHECK(slack_of(step.input()).value.value == 0);
  CHECK(slack_of(step.input()).high.value == 0);
}

TEST_CASE("a rank's own gradients are given up before the update, as DeepSpeed does",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  const OpGraph graph = written(step).graph;
  std::size_t flattened = 0, updated = 0;  // of the first group
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const std::string& name = graph.names()[index(graph.ops()[i].name)];
    if (name == "flatten_gradient" && flattened == 0) flattened = i;
    if (name == "update" && updated == 0) updated = i;
  }
  REQUIRE(flattened > 0);
  REQUIRE(flattened < updated);
  double own = 0;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.rank == 0 && graph.names()[index(effect.tensor_class)] == "own_gradients" &&
        index(effect.op) < updated)
      own += effect.bytes;
  // All but the norms, which do not decay and come as a group of their own.
  const double norms = static_cast<double>(count_parameters(step.model).of(TensorClass::norm));
  CHECK_THAT(own, exactly(2 * norms / 8));
}

TEST_CASE("what a further micro-batch adds to a rank's own gradients comes beside them first",
          "[workloads]") {
  const auto most_own = [](int accumulation) {
    TinyStep step = tiny_step(Sharding::zero2, tiny_model(), 2);
    step.job.accumulation = accumulation;
    const OpGraph graph = written(step).graph;
    double held = 0, most = 0;
    for (const MemoryEffect& effect : graph.memory()) {
      if (effect.rank != 0 || graph.names()[index(effect.tensor_class)] != "own_gradients")
        continue;
      held += effect.bytes;
      most = std::max(most, held);
    }
    CHECK_THAT(held, exactly(0));
    return most;
  };
  CHECK_THAT(most_own(2), exactly(2 * most_own(1)));
  CHECK_THAT(most_own(3), exactly(2 * most_own(1)));
}

TEST_CASE("releases that wait for reductions do not reduce beside the backward pass",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(), 2);
  step.job.micro_batch = 4096;  // kernels enough to hide reductions behind
  step.strategy.zero.overlap_comm = true;
  const double beside = seconds_of(step);
  step.strategy.zero.waits_for_reductions = true;
  const double waiting = seconds_of(step);
  CHECK(waiting > 1.001 * beside);
  step.strategy.zero.overlap_comm = false;
  CHECK(waiting < 1.001 * seconds_of(step));
}
