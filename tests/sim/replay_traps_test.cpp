// Habits of engines that have bitten, each held off by a law.
#include <ctime>
#include <limits>
#include <stdexcept>

#include "sim/engine/own/replay.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr double patience = 10;
#else
constexpr double patience = 1;
#endif

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Computations, hosts and flows of random sizes, each after up to two earlier operations.
OpGraph jumble(std::uint64_t seed, Rank ranks, std::uint32_t links, int size) {
  Dice dice(seed);
  OpGraph graph;
  std::vector<PatternId> patterns;
  for (std::uint32_t i = 0; i < 16; ++i)
    patterns.push_back(graph.pattern(
        one_round(1e-6 * dice.roll(30), {flow_over({dice.roll(links), dice.roll(links)}, 1.0 / 3)},
                  {dice.roll(ranks)})));
  for (int i = 0; i < size; ++i) {
    const Rank rank = dice.roll(ranks);
    const double seconds = 1e-6 * (1 + dice.roll(100));
    std::vector<OpId> after;
    for (int k = 0; k < 2 && i > 0; ++k)
      after.push_back(OpId{dice.roll(static_cast<std::uint32_t>(i))});
    switch (dice.roll(3)) {
      case 0:
        graph.add(compute_op(rank, seconds), after);
        break;
      case 1:
        graph.add(host_op(rank, seconds), after);
        break;
      default:
        graph.add(traffic_op(patterns[dice.roll(16)], 1e5 * (1 + dice.roll(100))), after);
    }
  }
  return graph;
}

}  // namespace

TEST_CASE("broken programs and platforms are refused before the engine starts", "[sim]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto graph_of = [](const Op& op) {
    OpGraph graph;
    graph.pattern(one_round(0, {flow_over({0})}));
    graph.add(op, {});
    return graph;
  };
  const auto pattern_of = [](const Pattern& pattern) {
    OpGraph graph;
    graph.add(traffic_op(graph.pattern(pattern), 1), {});
    return graph;
  };
  const Platform sound = tiny_platform({1e9});
  for (const OpGraph& graph :
       {graph_of(compute_op(1, 1)), graph_of(compute_op(0, nan)), graph_of(compute_op(0, -1)),
        graph_of(traffic_op(no_pattern, 1)), graph_of(traffic_op(PatternId{0}, nan)),
        pattern_of(one_round(0, {flow_over({})})), pattern_of(one_round(0, {flow_over({7})})),
        pattern_of(one_round(nan, {flow_over({0})})),
        pattern_of(one_round(0, {flow_over({0}, nan)})),
        pattern_of(one_round(0, {flow_over({0})}, {})),
        pattern_of(one_round(0, {flow_over({0})}, {3}))})
    CHECK_THROWS_AS(replay(sound, graph), std::logic_error);

  const OpGraph graph = graph_of(compute_op(0, 1));
  for (const auto& spoil :
       {+[](Platform& p) { p.links[0].capacity = {0}; },
        +[](Platform& p) { p.links[0].weight = 0; }, +[](Platform& p) { p.devices[0].speed = 0; },
        +[](Platform& p) { p.devices[0].compute_share = 2; },
        +[](Platform& p) { p.devices[0].engines = {LinkId{9}}; }}) {
    Platform platform = sound;
    spoil(platform);
    CHECK_THROWS_AS(replay(platform, graph), std::logic_error);
  }
}

TEST_CASE("an operation cannot wait for a later one", "[sim]") {
  OpGraph graph;
  CHECK_THROWS_AS(graph.add(join_op(), {OpId{0}}), std::logic_error);
}

TEST_CASE("a chain of a hundred thousand joins needs no stack", "[sim]") {
  const int joins = 100000;
  OpGraph graph;
  OpId last = graph.add(compute_op(0, 1), {});
  for (int i = 0; i < joins; ++i) last = graph.add(join_op(), {last});
  const Trace trace = replay(tiny_platform({}), graph);
  CHECK_THAT(trace.finish[index(last)], exactly(1));
}

TEST_CASE("fifty thousand operations on 64 ranks take under a second", "[sim]") {
  const int per_rank = 50000 / 64;
  OpGraph graph;
  for (Rank rank = 0; rank < 64; ++rank) {
    OpId last = graph.add(compute_op(rank, 1e-6), {});
    for (int i = 1; i < per_rank; ++i)
      last =
          graph.add(i % 2 == 0 ? compute_op(rank, 1e-6 * (1 + rank)) : host_op(rank, 2e-6), {last});
  }
  const double before = cpu_seconds();
  const Trace trace = replay(tiny_platform({}, 64), graph);
  CHECK(cpu_seconds() - before < patience);
  CHECK(trace.activities == graph.size());
}

TEST_CASE("flows of different latency share a link in equal parts", "[sim]") {
  // The near flow has the link to itself until the far one starts, then both get half of it. The
  // near one has what it moved alone less to move, and the link is never idle until the end.
  const double near = 2e-6, far = 22e-6, bandwidth = 50e9, bytes = 1e9;
  OpGraph graph;
  const OpId a = graph.add(traffic_op(graph.pattern(one_round(near, {flow_over({0})})), bytes), {});
  const OpId b = graph.add(traffic_op(graph.pattern(one_round(far, {flow_over({0})})), bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  const double alone = (far - near) * bandwidth;
  CHECK_THAT(trace.finish[index(a)], exactly(far + 2 * (bytes - alone) / bandwidth));
  CHECK_THAT(trace.finish[index(b)], exactly(near + 2 * bytes / bandwidth));
}

TEST_CASE("a kernel of a microsecond keeps nine digits when its rate changes midway", "[sim]") {
  const double kernel = 1e-6, share = 0.75, begin = 0.3e-6, length = 0.4e-6;
  Platform platform = tiny_platform({});
  platform.devices[0].compute_share = share;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, kernel), {});
  const OpId delay = graph.add(delay_op(0, begin), {});
  graph.add(traffic_op(graph.pattern(one_round(length, {})), 0), {delay});
  const Trace trace = replay(platform, graph);
  CHECK_THAT(trace.finish[index(compute)], WithinRel(kernel + (1 - share) * length, 1e-9));
}

TEST_CASE("a third of a buffer is not rounded to whole bytes", "[sim]") {
  const double bandwidth = 46e9;
  OpGraph graph;
  const PatternId third = graph.pattern(one_round(0, {flow_over({0}, 1.0 / 3)}));
  const PatternId whole = graph.pattern(one_round(0, {flow_over({0})}));
  OpId last = graph.add(join_op(), {});
  for (const double bytes : {1e3, 1e4, 1e6, 1e9}) {
    const OpId part = graph.add(traffic_op(third, bytes), {last});
    last = graph.add(traffic_op(whole, bytes), {part});
  }
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  double clock = 0;
  for (std::size_t i = 1; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    clock += op.bytes.value * (op.pattern == third ? 1.0 / 3 : 1.0) / bandwidth;
    CAPTURE(op.bytes.value);
    CHECK_THAT(trace.finish[i], exactly(clock));
  }
}

TEST_CASE("the same program gives the same bits twice", "[sim]") {
  const OpGraph graph = jumble(7, 8, 12, 2000);
  const Platform platform =
      tiny_platform({1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 8e9, 9e9, 1e9, 2e9, 3e9}, 8);
  const auto play = [&] { return everything_in(replay(platform, graph)); };
  const std::vector<double> once = numbers_from_worker(play), twice = numbers_from_worker(play);
  REQUIRE(once.size() > 3 * graph.size());
  CHECK(once == twice);
}

TEST_CASE("no operation starts before it is ready or ends before it starts", "[sim]") {
  const OpGraph graph = jumble(11, 8, 12, 2000);
  const Platform platform =
      tiny_platform({1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 8e9, 9e9, 1e9, 2e9, 3e9}, 8);
  const Trace trace = replay(platform, graph);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    double last = 0;
    for (const OpId before : graph.predecessors(OpId{static_cast<std::uint32_t>(i)}))
      last = std::max(last, trace.finish[index(before)]);
    REQUIRE(trace.start[i] == last);
    REQUIRE(trace.ready[i] <= trace.start[i]);
    REQUIRE(trace.start[i] <= trace.finish[i]);
    REQUIRE(trace.finish[i] <= trace.makespan.value);
  }
  for (std::size_t i = 0; i < platform.links.size(); ++i)
    CHECK(trace.links[i].bytes <=
          platform.links[i].capacity.value * trace.links[i].busy.value * (1 + 1e-9));
}

}  // namespace stepsim
