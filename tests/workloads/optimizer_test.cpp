// What an update is made of, by the kind of optimizer.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/updates.hpp"

using namespace stepsim;

namespace {

Sum stops(Sharding sharding, std::string_view optimizer, double groups) {
  TinyStep step = tiny_step(sharding);
  step.strategy.optimizer = optimizer_called(optimizer);
  step.strategy.zero.sub_group = elements_of(step).total / 8 / groups;
  return sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::host, "update_done");
}

}  // namespace

TEST_CASE("a tensor that is updated in the backward pass leaves no gradient behind",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0, tiny_model(), 1, 1);
  const auto gradients = [&] {
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    double now = 0, most = 0;
    for (const MemoryEffect& effect : graph.memory())
      if (graph.names()[index(effect.tensor_class)] == "gradients")
        most = std::max(most, now += effect.bytes);
    return most;
  };
  const auto updated = [&] {
    return sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::compute, "update");
  };
  const double all = gradients();
  CHECK_THAT(all, exactly(2 * elements_of(step).total));
  const double bytes = updated().bytes;
  step.strategy.update_in_backward = true;
  CHECK(gradients() < all / 2);
  CHECK_THAT(updated().bytes, exactly(bytes));
  CHECK(updated().count == 3 * 9 + 3);  // once for each tensor
}

TEST_CASE("bitsandbytes stops the host behind every tensor that it sees", "[workloads]") {
  CHECK(stops(Sharding::zero3, "adamw_8bit", 5).count == 5);
  CHECK(stops(Sharding::zero2, "adamw_8bit", 5).count == 2);  // what decays and not
  CHECK(stops(Sharding::fsdp, "adamw_8bit", 5).count == 1);   // all in one
  for (const char* other : {"adamw", "adamw_4bit"})
    CHECK(stops(Sharding::zero3, other, 5).count == 0);
}

TEST_CASE("kernels of an update: lists of tensors, or each by itself", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  Strategy& s = step.strategy;
  const UpdatedTensors small{.elements = 500, .tensors = 500, .largest = 1};
  const UpdatedTensors flat{.elements = 1e9, .tensors = 1, .largest = 1e9};
  const auto launches = [&](const UpdatedTensors& of) {
    return update_cost(step.rank(), of).launches;
  };
  CHECK(launches(small) == 14);  // 36 tensors each
  CHECK(launches(flat) == 48);   // 320 blocks of 65536 elements each
  CHECK(update_cost(step.rank(), flat).dispatches == 1);
  s.update_kernels = UpdateKernels::foreach;
  CHECK(launches(small) == 4 * 5 + 3 * 8 + 11);  // of one, two and three lists
  CHECK(launches(flat) == 8 * 48);
  CHECK(update_cost(step.rank(), flat).dispatches == 8);
  s.update_kernels = UpdateKernels::single;
  CHECK(launches(small) == 8 * 500);
  CHECK(launches(flat) == 8);
  s.optimizer = optimizer_called("adamw_8bit");
  CHECK(launches(small) == 500);
  s.optimizer = optimizer_called("adamw_4bit");
  CHECK(launches(small) == 1000);
}

TEST_CASE("operator by operator the update passes 20 times over what one kernel passes 7",
          "[workloads]") {
  const auto of = [&](UpdateKernels kernels) {
    TinyStep step = tiny_step(Sharding::zero2);
    step.strategy.update_kernels = kernels;
    return update_cost(step.rank(), {.elements = 1000, .tensors = 10, .largest = 300});
  };
  CHECK(of(UpdateKernels::fused).more_bytes == 0);
  CHECK(of(UpdateKernels::fused).temporary == 0);
  for (const UpdateKernels kernels : {UpdateKernels::foreach, UpdateKernels::single})
    CHECK(of(kernels).more_bytes == 13 * 4 * 1000);
  // The root of all moments; of one tensor's, and that divided.
  CHECK(of(UpdateKernels::foreach).temporary == 4 * 1000);
  CHECK(of(UpdateKernels::single).temporary == 2 * 4 * 300);
}

TEST_CASE("kernels of the update take longer and hold more, whatever is sharded", "[workloads]") {
  for (const Sharding sharding :
       {Sharding::zero0, Sharding::zero1, Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
    TinyStep step = tiny_step(sharding);
    const auto held = [&](UpdateKernels kernels) {
      step.strategy.update_kernels = kernels;
      const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
      double most = 0;
      for (const MemoryEffect& effect : graph.memory())
        if (graph.names()[index(effect.tensor_class)] == "update_temporary")
          most = std::max(most, effect.bytes);
      return most;
    };
    CHECK(held(UpdateKernels::fused) == 0);
    CHECK(held(UpdateKernels::foreach) > 0);
    const double operators = seconds_of(step);
    step.strategy.update_kernels = UpdateKernels::fused;
    CHECK(seconds_of(step) < operators);
  }
}

TEST_CASE("under FSDP an 8-bit update takes a stop of the host for each tensor longer",
          "[workloads]") {
  const auto seconds = [](double sync) {
    TinyStep step = tiny_step(Sharding::fsdp);
    step.strategy.optimizer = optimizer_called("adamw_8bit");
    step.stack.host.sync.value = {sync};
    return seconds_of(step);
  };
  const double tensors = 3 * 9 + 3;
  CHECK_THAT(seconds(2) - seconds(1), WithinRel(tensors, 1e-6));
}

TEST_CASE("an update that searches for the place of each moment takes longer than its bytes",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0);
  step.cluster.gpu.peak.fp32 = Constant<FlopsPerSecond>{{50e12}, {50e12}, {50e12}, {}, ""};
  constexpr double numbers = 1e9;
  const auto seconds = [&](const char* optimizer) {
    step.strategy.optimizer = optimizer_called(optimizer);
    const RankPart rank = step.rank();
    const KernelRow row = update_row(update_cost(rank, {numbers, 1, numbers}),
                                     optimizer_traffic_bytes(rank) * numbers, 0);
    return device_time(step.cluster.gpu, step.stack, {row}, false).value;
  };
  const double start = step.cluster.gpu.elementwise.start.number();
  for (const char* searching : {"adamw_8bit", "lion_8bit"})
    CHECK_THAT(seconds(searching),
               exactly(start + optimizer_called(searching).operations * numbers / 50e12));
  CHECK(seconds("adamw_8bit") > 2 * seconds("adamw"));
  CHECK(seconds("adamw_torch_8bit") < seconds("adamw"));
  CHECK(stops(Sharding::zero3, "adamw_torch_8bit", 5).count == 0);
}
