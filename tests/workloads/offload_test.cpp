// Optimizer and parameters in host memory in part, and on drives.
#include <algorithm>
#include <cmath>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"
#include "workloads/sharding/updates.hpp"

using namespace stepsim;

namespace {

constexpr double ranks = 8;
constexpr double host_bytes = 28 + 14;  // of the optimizer, and of the passes around it

TinyStep on_host(double ratio, double groups) {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.optimizer_place = Offload::cpu;
  step.strategy.offload.ratio = ratio;
  step.strategy.zero.sub_group = elements_of(step).total / ranks / groups;
  return step;
}

TinyStep on_drives(double groups) {
  TinyStep step = on_host(1, groups);
  step.strategy.optimizer_place = Offload::nvme;
  step.strategy.offload.optimizer_buffers = 12;
  return step;
}

double held(const TinyStep& step, Pool pool, Held held_class) {
  double sum = 0;
  for (const Holding& holding : resident_of(step.rank()).holdings)
    if (holding.pool == pool && holding.held == held_class) sum += holding.bytes;
  return sum;
}

Sum moved(const TinyStep& step, Stream stream) {
  const StepProgram program = build_step(step.input(), Folding::automatic);
  Sum sum;
  for (const Op& op : program.graph.ops())
    if (op.kind == OpKind::transfer && op.stream == stream && op.rank == 0)
      sum = {sum.bytes + op.bytes.value, sum.count + 1, sum.seconds + op.seconds.value};
  return sum;
}

}  // namespace

TEST_CASE("a ratio leaves whole sub-groups of the optimizer on the device", "[workloads]") {
  const double mine = elements_of(on_host(1, 4)).total / ranks;
  for (const auto& [ratio, stays] : {std::pair{1.0, 0.0},
                                     {0.75, 0.25},
                                     {0.6, 0.25},
                                     {0.5, 0.5},
                                     {0.26, 0.5},
                                     {0.25, 0.75},
                                     {0.0, 1.0}}) {
    CAPTURE(ratio);
    const TinyStep step = on_host(ratio, 4);
    CHECK_THAT(held(step, Pool::device, Held::master_weights), exactly(4 * mine * stays));
    CHECK_THAT(held(step, Pool::device, Held::optimizer), exactly(8 * mine * stays));
    CHECK_THAT(held(step, Pool::pageable, Held::optimizer), exactly(8 * mine * (1 - stays)));
    const double updated =
        sum_named(build_step(step.input(), Folding::off).graph, OpKind::cpu, "cpu_adam").bytes /
        host_bytes;
    CHECK_THAT(updated + mine * stays, exactly(mine));
  }
}

TEST_CASE("below stage 3 a ratio is a share of the optimizer, to the byte", "[workloads]") {
  const auto stage = GENERATE(Sharding::zero1, Sharding::zero2);
  for (const double ratio : {1.0, 0.6, 0.25}) {
    CAPTURE(ratio);
    TinyStep step = tiny_step(stage);
    step.strategy.optimizer_place = Offload::cpu;
    step.strategy.offload.ratio = ratio;
    const double mine = elements_of(step).total / ranks;
    CHECK_THAT(held(step, Pool::device, Held::optimizer), exactly(8 * mine * (1 - ratio)));
    CHECK_THAT(held(step, Pool::pageable, Held::master_weights), exactly(4 * mine * ratio));
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    CHECK_THAT(sum_named(graph, OpKind::cpu, "cpu_adam").bytes / host_bytes, exactly(mine * ratio));
    // In fp32 down, in 16 bits up.
    CHECK_THAT(moved(step, Stream::d2h).bytes, exactly(4 * mine * ratio));
    CHECK_THAT(moved(step, Stream::h2d).bytes, exactly(2 * mine * ratio));
    CHECK((sum_named(graph, OpKind::compute, "update").count > 0) == (ratio < 1));
  }
}

namespace {

TinyStep fsdp_on_host() {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.optimizer_place = step.strategy.parameter_place = Offload::cpu;
  return step;
}

}  // namespace

TEST_CASE("FSDP with offload keeps nothing on the device between steps", "[workloads]") {
  const TinyStep step = fsdp_on_host();
  const double mine = elements_of(step).total / ranks;
  CHECK_THAT(resident_of(step.rank()).in(Pool::device), exactly(0));
  CHECK_THAT(held(step, Pool::pinned, Held::parameters), exactly(4 * mine));
  CHECK_THAT(held(step, Pool::pinned, Held::own_gradients), exactly(4 * mine));
  CHECK_THAT(held(step, Pool::pageable, Held::optimizer), exactly(8 * mine));
}

TEST_CASE("FSDP with offload: each gather of a shard crosses the host link, each gradient once",
          "[workloads]") {
  const auto version = GENERATE(1, 2);
  TinyStep step = fsdp_on_host();
  step.strategy.fsdp.version = version;
  step.strategy.precision.type = ProductType::bf16;
  const double mine = elements_of(step).total / ranks;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  double gathered = 0;
  for (const Op& op : graph.ops())
    if (op.kind == OpKind::collective && op.cause == Cause::gather_bytes && op.rank == 0)
      gathered += op.bytes.value;
  // In fp32 as they are stored; what is gathered, by all ranks together, has 16 bits.
  CHECK_THAT(moved(step, Stream::h2d).bytes, exactly(gathered / ranks * 2));
  CHECK(moved(step, Stream::h2d).bytes > 4 * mine);
  CHECK_THAT(moved(step, Stream::d2h).bytes, exactly(4 * mine));
  CHECK(sum_named(graph, OpKind::compute, "update").count == 0);
  CHECK_THAT(sum_named(graph, OpKind::cpu, "norm_on_host").bytes, exactly(4 * mine));
  CHECK_THAT(sum_named(graph, OpKind::cpu, "cpu_adam").bytes, exactly((28 + 8) * mine));
}

TEST_CASE("FSDP with offload: a gradient that is added to one on the host stops the host",
          "[workloads]") {
  TinyStep step = fsdp_on_host();
  const double mine = elements_of(step).total / ranks;
  const auto added = [&](bool each) {
    step.job.accumulation = 3;
    step.strategy.fsdp.sync_each_batch = each;
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_named(graph, OpKind::cpu, "add_gradient").bytes;
  };
  CHECK_THAT(added(false), exactly(0));
  CHECK_THAT(added(true), exactly(2 * 3 * 4 * mine));
}

TEST_CASE("an optimizer alone updates what a whole step does, and runs no layer", "[workloads]") {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero3, Sharding::fsdp}) {
    CAPTURE(sharding_names[static_cast<std::size_t>(sharding)]);
    TinyStep step = tiny_step(sharding);
    const auto updated = [&] {
      double seconds = 0;
      const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
      for (const Op& op : graph.ops())
        if (op.kind == OpKind::compute && op.cause == Cause::optimizer && op.rank == 0)
          seconds += op.seconds.value;
      return seconds;
    };
    const double whole = updated();
    CHECK(whole > 0);
    step.job.only_update = true;
    CHECK_THAT(updated(), exactly(whole));
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    for (const Op& op : graph.ops())
      CHECK((op.kind != OpKind::compute || op.cause == Cause::optimizer));
  }
}

TEST_CASE("AdamW on the host: in one pass, an operator at a time, or written for Grace",
          "[workloads]") {
  TinyStep step = on_host(1, 4);
  step.strategy.parameter_place = Offload::cpu;
  step.job.only_update = true;
  const auto seconds = [&](HostAdam adam) {
    step.strategy.offload.adam = adam;
    step.cluster.node.host.cpu_adam_grace = step.cluster.node.host.cpu_adam;
    step.cluster.node.host.cpu_adam_grace->value.value *= 0.8;
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_named(graph, OpKind::cpu, "cpu_adam").bytes *
           host_update_of(step.input().cluster, step.input().strategy).adam.value;
  };
  const double once = seconds(HostAdam::one_pass);
  CHECK_THAT(seconds(HostAdam::operators), exactly(once * 20 / 7));  // passes over fp32 numbers
  CHECK_THAT(seconds(HostAdam::grace), exactly(once * 0.8));
}

TEST_CASE("an update by one core takes its bytes over what a core keeps up", "[workloads]") {
  TinyStep step = on_host(1, 1);
  step.strategy.parameter_place = Offload::cpu;
  step.job.only_update = true;
  Constant<BytesPerSecond> stream;
  stream.value = {1e6};  // far below a share of the socket
  step.cluster.node.host.core_stream = stream;
  const double bytes =
      sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::cpu, "cpu_adam").bytes;
  const auto with = [&](std::int64_t threads) {
    step.strategy.offload.threads = threads;
    return seconds_of(step);
  };
  // Gathers and hooks around it stay what they are.
  CHECK_THAT(with(1) - with(2), WithinRel(bytes / 1e6 / 2, 1e-6));
  CHECK(with(0) < with(4));
  // The cores that a job has bound it, too, however many threads there are.
  step.cluster.node.host.cores = static_cast<int>(2 * step.cluster.gpus_per_node());
  const double two = with(2);
  CHECK_THAT(with(0), exactly(two));
  CHECK_THAT(with(4), exactly(two));
}

TEST_CASE("what stays on the device is updated while the host works on the rest", "[workloads]") {
  const double all = seconds_of(on_host(1, 4)), half = seconds_of(on_host(0.5, 4)),
               none = seconds_of(on_host(0, 4));
  CHECK(half < all);
  CHECK(none < half);
}

TEST_CASE("states on drives are read and written once a step, gradients written and read",
          "[workloads]") {
  const TinyStep step = on_drives(3);
  const double mine = elements_of(step).total / ranks;
  CHECK_THAT(moved(step, Stream::drive_in).bytes, exactly(16 * mine));
  CHECK_THAT(moved(step, Stream::drive_out).bytes, exactly(16 * mine));
  CHECK_THAT(held(step, Pool::disk, Held::optimizer), exactly(8 * mine));
  CHECK_THAT(held(step, Pool::pinned, Held::swap_buffers), exactly(12 * 4 * mine / 3));
  CHECK(held(step, Pool::pageable, Held::optimizer) == 0);
}

TEST_CASE("parameters on drives are read for each gather, what stays in host memory is not",
          "[workloads]") {
  TinyStep step = on_host(1, 1);
  step.strategy.zero.max_reuse = step.strategy.zero.max_live = 0;
  step.strategy.zero.persistence_threshold = 0;
  step.strategy.parameter_place = Offload::cpu;
  const double up = sum_named(build_step(step.input(), Folding::automatic).graph, OpKind::transfer,
                              "parameters_to_device")
                        .bytes;
  step.strategy.parameter_place = Offload::nvme;
  step.strategy.offload.max_in_cpu = 0;
  CHECK_THAT(moved(step, Stream::drive_in).bytes, exactly(up));
  const double mine = elements_of(step).total / ranks;
  step.strategy.offload.max_in_cpu = mine / 4;
  CHECK_THAT(moved(step, Stream::drive_in).bytes, exactly(0.75 * up));
  CHECK_THAT(held(step, Pool::disk, Held::parameters), exactly(0.75 * 2 * mine));
}

TEST_CASE("with slow drives a step takes as long as they do, less where reads and writes overlap",
          "[workloads]") {
  TinyStep step = on_drives(32);
  const double rate = 1e6, node = elements_of(step).total;
  for (LinkSpec& link : step.cluster.node.links)
    if (link.name == "nvme") link.bandwidth.value = {rate};
  step.cluster.graph = lay_out(Catalogue(), step.cluster.node);
  // Gradients go out behind the backward pass; then all comes in, and 12 bytes an element go out.
  const double one_by_one = (4 + 16 + 12) * node / rate, overlapped = (4 + 16) * node / rate;
  CHECK_THAT(seconds_of(step), WithinRel(one_by_one, 0.05));
  step.strategy.offload.pipeline_read = step.strategy.offload.pipeline_write = true;
  const double pipelined = seconds_of(step);
  CHECK(pipelined >= overlapped);
  CHECK_THAT(pipelined, WithinRel(overlapped, 0.08));
}

TEST_CASE("gradients go to the host in line with the reductions, one bucket after the other",
          "[workloads]") {
  const std::vector<double> late = numbers_from_worker([] {
    const Replayed replayed = play(on_host(1, 1));
    const OpGraph& graph = replayed.program.graph;
    double copied = 0, earliest = 0, buckets = 0;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      const std::string_view name = graph.names()[index(op.name)];
      if (op.kind == OpKind::transfer && name == "gradient_partition")
        copied = std::max(copied, replayed.trace.finish[i]);
      if (op.kind != OpKind::collective || name != "reduce_bucket") continue;
      buckets += 1;
      earliest = std::min(earliest, replayed.trace.start[i] - copied);
    }
    return std::vector<double>{buckets, earliest};
  });
  CHECK(late[0] > 2);
  CHECK(late[1] > -1e-9);
}

TEST_CASE(
    "on its way to the host a gradient is on the device in 16 bits, at the boundary in 32 too",
    "[workloads]") {
  TinyStep step = on_host(1, 1);
  const double part = static_cast<double>(step.model.vocabulary * step.model.hidden) / ranks;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  double most = 0;
  for (const MemoryEffect& effect : graph.memory())
    if (graph.names()[index(effect.tensor_class)] == "gradient_copy")
      most = std::max(most, effect.bytes);
  CHECK_THAT(most, exactly((2 + 4) * part));
}
