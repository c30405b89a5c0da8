// Idealised programs. All times are worked out by hand.
#include "sim/ideal.hpp"

#include <algorithm>
#include <array>

#include "sim/engine/own/replay.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

Op with(Op op, Cause cause) {
  op.cause = cause;
  return op;
}

// Launch 1 s, kernel 4 s beside a gather of 2 s latency and 3 s of bytes, and a kernel of 1 s that
// waits for both.
OpGraph launch_kernel_gather() {
  OpGraph graph;
  const OpId launch = graph.add(with(host_op(0, 1), Cause::launch), {});
  const OpId kernel = graph.add(with(compute_op(0, 4), Cause::compute), {launch});
  const PatternId pattern = graph.pattern(one_round(2, {flow_over({0})}));
  const OpId gather = graph.add(with(traffic_op(pattern, 300), Cause::gather_bytes), {launch});
  graph.add(with(compute_op(0, 1), Cause::recompute), {kernel, gather});
  return graph;
}

double seconds_without(const OpGraph& graph, CauseSet causes, const Platform& platform) {
  return numbers_from_worker([&] {
           return std::vector<double>{replay(platform, idealised(graph, causes)).makespan.value};
         })
      .front();
}

CauseSet only(std::initializer_list<Cause> causes) {
  CauseSet set;
  for (const Cause cause : causes) set.add(cause);
  return set;
}

}  // namespace

TEST_CASE("a free cause costs neither seconds nor bytes nor latency, and waits stay", "[sim]") {
  const OpGraph graph = launch_kernel_gather();
  const Platform platform = tiny_platform({100});
  CHECK_THAT(seconds_without(graph, {}, platform), exactly(1 + 5 + 1));
  CHECK_THAT(seconds_without(graph, only({Cause::launch}), platform), exactly(5 + 1));
  CHECK_THAT(seconds_without(graph, only({Cause::gather_bytes}), platform), exactly(1 + 4 + 1));
  CHECK_THAT(seconds_without(graph, only({Cause::gather_bytes, Cause::compute}), platform),
             exactly(1 + 1));
  CHECK(seconds_without(graph, CauseSet((1u << cause_count) - 1), platform) == 0);
}

TEST_CASE("a free collective slows nobody's kernels", "[sim]") {
  const OpGraph graph = launch_kernel_gather();
  Platform platform = tiny_platform({100});
  platform.devices[0].compute_share = 0.5;
  // Under the gather, 5 s from 1 to 6, the first kernel does 2.5 of its 4 s; 1.5 s are left.
  CHECK_THAT(seconds_without(graph, {}, platform), exactly(1 + 5 + 1.5 + 1));
  CHECK_THAT(seconds_without(graph, only({Cause::gather_bytes}), platform), exactly(1 + 4 + 1));
}

TEST_CASE("a program made ready once is played with any causes free", "[sim]") {
  constexpr std::array causes{Cause::compute, Cause::launch, Cause::gather_bytes, Cause::optimizer,
                              Cause::other};
  const std::uint64_t seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{9}));
  CAPTURE(seed);
  Dice dice(seed);
  Platform platform = tiny_platform({100, 70}, 2);
  for (Device& device : platform.devices) device.compute_share = 0.6;
  OpGraph graph;
  const std::array patterns{
      graph.pattern(one_round(0.3, {flow_over({0}), flow_over({0, 1})}, {0, 1})),
      graph.pattern(one_round(0, {flow_over({1})}))};
  for (std::uint32_t i = 0; i < 120; ++i) {
    const Rank rank = dice.roll(2);
    const double seconds = dice.roll(4) == 0 ? 0 : 0.1 * dice.roll(20);
    Op op = compute_op(rank, seconds);
    if (const std::uint32_t kind = dice.roll(5); kind == 0)
      op = traffic_op(patterns[dice.roll(2)], 10.0 * dice.roll(9));
    else if (kind == 1)
      op = join_op(rank);
    else if (kind < 4)
      op = host_op(rank, seconds);
    std::vector<OpId> after;
    for (std::uint32_t n = dice.roll(4); n > 0 && i > 0; --n)
      after.push_back(OpId{i - 1 - dice.roll(std::min(i, 12u))});
    graph.add(with(op, causes[dice.roll(causes.size())]), after);
  }
  const Replayer replayer(platform, graph);
  for (std::uint32_t bits = 0; bits < 8; ++bits) {
    CauseSet free;
    for (std::size_t i = 0; i < 3; ++i)
      if ((bits >> i & 1) != 0) free.add(causes[i]);
    const Trace whole = replay(platform, idealised(graph, free));
    CHECK(replayer.play(Watched::times, free).finish == whole.finish);
    const Trace alone = replayer.play(Watched::makespan, free);
    CHECK(alone.makespan == whole.makespan);
    CHECK(alone.finish.empty());
  }
}

}  // namespace stepsim
