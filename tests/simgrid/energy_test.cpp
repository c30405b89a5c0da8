// These tests hold SimGrid's plugins, which meter energy, against what can be worked out by hand
// and against the integral over the trace.
#include "analysis/energy.hpp"

#include "sim/engine/player.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/any_program.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"

namespace stepsim {
namespace {

// The collectives and products of this board together pass its limit.
constexpr RankPower board{.idle = 100,
                          .memory = 400,
                          .compute = 650,
                          .communication = 300,
                          .limit = 700,
                          .host = 250,
                          .cores = 60,
                          .network = 40};

constexpr double agreed = 1e-9;

// Every replay by SimGrid needs a process of its own.
Trace metered(const Platform& platform, const OpGraph& graph, std::vector<LinkPower> links = {}) {
  return in_fresh_child([&] {
    const Draws draws{board, std::move(links)};
    return simgrid_replay(platform, graph, Watched::everything, {}, &draws);
  });
}

void check_same(const std::vector<double>& meters, const std::vector<double>& integrals) {
  REQUIRE(meters.size() == integrals.size());
  for (std::size_t i = 0; i < meters.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(meters[i], WithinRel(integrals[i], agreed));
  }
}

// Returns the meters of a program, which have to be those of the integral over its trace.
Meters agreed_meters(const Platform& platform, const OpGraph& graph) {
  const Trace trace = metered(platform, graph);
  const Meters integral = meters_of(graph, trace, platform.devices.size(), board);
  check_same(trace.meters.gpus, integral.gpus);
  check_same(trace.meters.hosts, integral.hosts);
  check_same(trace.meters.network, integral.network);
  return trace.meters;
}

OpId compute_after(OpGraph& graph, std::uint8_t streaming, double seconds,
                   std::vector<OpId> after = {}, Stream stream = Stream::compute) {
  Op op = compute_op(0, seconds);
  op.streaming = streaming;
  op.stream = stream;
  return graph.add(op, after);
}

}  // namespace

TEST_CASE("meters of an idle GPU read what it draws at rest", "[simgrid]") {
  const double seconds = 2.5;
  OpGraph graph;
  graph.add(delay_op(0, seconds), {});
  const Meters meters = agreed_meters(tiny_platform({}), graph);
  CHECK_THAT(meters.gpus.front(), exactly(100 * seconds));
  CHECK_THAT(meters.hosts.front(), exactly(250 * seconds));
  CHECK_THAT(meters.network.front(), exactly(40 * seconds));
}

TEST_CASE("meters of a GPU that computes half of the time", "[simgrid]") {
  OpGraph graph;
  const OpId work = graph.add(compute_op(0, 1), {});
  graph.add(delay_op(0, 1), {work});
  CHECK_THAT(agreed_meters(tiny_platform({}), graph).gpus.front(), exactly(650 + 100));
}

TEST_CASE("meters tell memory from arithmetic, and two computations from one", "[simgrid]") {
  OpGraph graph;
  const OpId streams = compute_after(graph, 32, 1);           // 400 W
  const OpId mixed = compute_after(graph, 16, 2, {streams});  // 525 W
  const OpId rest = graph.add(delay_op(0, 1), {mixed});       // 100 W
  compute_after(graph, 32, 1, {rest});                        // both share the device for 2 s,
  compute_after(graph, 32, 1, {rest}, Stream::gather);        // 300 W above rest each
  const Meters meters = agreed_meters(tiny_platform({}), graph);
  CHECK_THAT(meters.gpus.front(), exactly(400 + 2 * 525 + 100 + 2 * 700));
}

TEST_CASE("meters of collectives alone and beside products", "[simgrid]") {
  // Beside the collective, which takes 4 s, the kernel is at half of its speed and takes 2 s.
  Platform platform = tiny_platform({25});
  platform.devices[0].compute_share = 0.5;
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(1, {flow_over({0})})), 75), {});
  compute_after(graph, 0, 1);
  const Meters meters = agreed_meters(platform, graph);
  CHECK_THAT(meters.gpus.front(), exactly(2 * 700 + 2 * 300));  // the limit holds beside products
}

TEST_CASE("meters of a host that updates", "[simgrid]") {
  OpGraph graph;
  const PatternId pattern = graph.pattern(one_round(0, {flow_over({0})}));
  const OpId update = graph.add(traffic_op(pattern, 100, OpKind::cpu), {});
  graph.add(traffic_op(pattern, 100, OpKind::cpu), {});  // both at once, in 2 s
  graph.add(delay_op(0, 1), {update});
  CHECK_THAT(agreed_meters(tiny_platform({100}), graph).hosts.front(), exactly(3 * 250 + 2 * 60));
}

TEST_CASE("a straggler draws for as long as it takes", "[simgrid]") {
  Platform platform = tiny_platform({});
  platform.devices[0].speed = 0.5;
  platform.devices[0].changes = {{.at = 1, .length = 4, .share = 0.25}};
  OpGraph graph;
  graph.add(compute_op(0, 1), {});  // half in the first second, a half in four more
  CHECK_THAT(agreed_meters(platform, graph).gpus.front(), exactly(5 * 650));
}

TEST_CASE("meters stop where a machine is lost, and where the program ends", "[simgrid]") {
  Platform platform = tiny_platform({100});
  OpGraph graph;
  const OpId short_one = graph.add(compute_op(0, 1), {});
  graph.add(delay_op(0, 1 - 5e-6), {short_one});
  graph.add(compute_op(0, 9), {short_one});
  platform.lost_at = 2;  // SimGrid stops at what happens within ten microseconds before it
  CHECK_THAT(agreed_meters(platform, graph).gpus.front(), WithinRel(2 * 650, agreed));
  platform.lost_at = {};
  graph.beside({.pattern = graph.pattern(one_round(0, {flow_over({0})})), .bytes = {5000}});
  CHECK_THAT(agreed_meters(platform, graph).gpus.front(), exactly(10 * 650));
}

TEST_CASE("meters of links read what they draw anyhow and by their bytes", "[simgrid]") {
  const double idle = 5, busy = 20, bytes = 100, latency = 3;
  Platform platform = tiny_platform({50, 50, 50});
  platform.links[1].weight = 2;  // stands for two flows, and is full with one at half of its width
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(latency, {flow_over({0, 1})})), bytes), {});
  const Trace trace = metered(platform, graph, {{idle, busy}, {idle, busy}, {idle, busy}});
  const double end = latency + bytes / 25;
  CHECK_THAT(trace.makespan.value, exactly(end));
  CHECK_THAT(trace.meters.links.at(0), exactly(idle * end + (busy - idle) * bytes / 50));
  CHECK_THAT(trace.meters.links.at(1), exactly(idle * end + (busy - idle) * 2 * bytes / 50));
  CHECK_THAT(trace.meters.links.at(2), exactly(idle * end));
}

TEST_CASE("a link's meter sees what changes its flows elsewhere", "[simgrid]") {
  // The long flow has 100 B/s for 1 s, 50 B/s beside the other, which comes on the second link
  // alone, for 2 s, and again 100 B/s: no flow starts or ends on the first link in between.
  const double busy = 20;
  Platform platform = tiny_platform({100, 100});
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0, 1})})), 300), {});
  graph.add(traffic_op(graph.pattern(one_round(1, {flow_over({1})})), 100), {});
  const Trace trace = metered(platform, graph, {{0, busy}, {0, busy}});
  CHECK_THAT(trace.makespan.value, exactly(4));
  CHECK_THAT(trace.meters.links.at(0), exactly(busy * 300 / 100));
  CHECK_THAT(trace.meters.links.at(1), exactly(busy * 400 / 100));
}

TEST_CASE("meters that differ by more than a billionth are an error", "[simgrid]") {
  const Player player(EngineChoice::simgrid);
  Trace trace;
  trace.meters = {.gpus = {1000}, .hosts = {10}, .network = {0}};
  player.compare_energy(trace, {.gpus = {1000 + 5e-7}, .hosts = {10}, .network = {0}});
  CHECK_THAT(trace.by.energy_difference.value(), WithinRel(5e-10, 1e-3));
  CHECK_THROWS_WITH(
      player.compare_energy(trace, {.gpus = {1000}, .hosts = {10 + 2e-8}, .network = {0}}),
      Catch::Contains("its meters read 10 J of the host of GPU 0"));
  Trace unmetered;
  player.compare_energy(unmetered, {.gpus = {1}});
  CHECK(!unmetered.by.energy_difference);
}

TEST_CASE("meters agree with the integral over programs without order", "[simgrid]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    Platform platform = uneven_platform(dice);
    OpGraph graph = any_program(dice, 20 + 40 * static_cast<std::uint32_t>(seed % 10));
    if (seed % 2 == 1) let_change(platform, dice);
    if (seed % 3 == 1) add_neighbours(graph, dice);
    agreed_meters(platform, in_streams(graph, dice));
  }
}

}  // namespace stepsim
