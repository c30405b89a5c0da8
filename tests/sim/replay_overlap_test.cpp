// Compute and collectives on one device slow each other. All times are worked out by hand.
#include <algorithm>

#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

// One device whose engine is link 0; link 1 is no engine of anybody.
Platform overlapping(double compute_share, double collective_share) {
  Platform platform = tiny_platform({100, 100});
  platform.devices[0].compute_share = compute_share;
  platform.devices[0].collective_share = collective_share;
  platform.devices[0].engines = {LinkId{0}};
  return platform;
}

}  // namespace

TEST_CASE("compute under a collective keeps its share of the rate", "[sim]") {
  const double work = 2, share = 0.75, transfer = 1;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 100 * transfer), {});
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(collective)], exactly(transfer));
  // While the transfer runs, share x transfer seconds of the work are done.
  CHECK_THAT(trace.finish[index(compute)], exactly(transfer + work - share * transfer));
}

TEST_CASE("compute that lies within a collective takes its seconds over its share", "[sim]") {
  const double work = 2, share = 0.75;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 1000), {});
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(work / share));
}

TEST_CASE("a collective under compute keeps its share of its engines", "[sim]") {
  const double work = 10, share = 0.8, transfer = 1;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 100 * transfer), {});
  const OpId elsewhere =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({1})})), 100 * transfer), {});
  const Trace trace = replay(overlapping(1, share), graph);
  CHECK_THAT(trace.finish[index(collective)], exactly(transfer / share));
  CHECK_THAT(trace.finish[index(elsewhere)], exactly(transfer));
  CHECK_THAT(trace.finish[index(compute)], exactly(work));
}

TEST_CASE("compute and a collective slow each other for as long as both run", "[sim]") {
  const double work = 2, compute_share = 0.75, transfer = 1, collective_share = 0.8;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 100 * transfer), {});
  const OpId after = graph.add(
      traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 100 * transfer), {compute});
  const Trace trace = replay(overlapping(compute_share, collective_share), graph);
  const double both = transfer / collective_share;
  const double done = both + work - compute_share * both;
  CHECK_THAT(trace.finish[index(collective)], exactly(both));
  CHECK_THAT(trace.finish[index(compute)], exactly(done));
  CHECK_THAT(trace.finish[index(after)], exactly(done + transfer));  // alone: the engine is whole
}

TEST_CASE("compute that ends first gives the engines back", "[sim]") {
  const double work = 0.5, transfer = 1, share = 0.8;
  OpGraph graph;
  graph.add(compute_op(0, work), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), 100 * transfer), {});
  const Trace trace = replay(overlapping(1, share), graph);
  CHECK_THAT(trace.finish[index(collective)], exactly(work + transfer - share * work));
}

TEST_CASE("two collectives on a device slow its compute once", "[sim]") {
  const double work = 4, share = 0.75, first = 1, second = 2;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  graph.add(traffic_op(graph.pattern(one_round(first, {})), 0), {});
  graph.add(traffic_op(graph.pattern(one_round(second, {})), 0), {});
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(second + work - share * second));
}

TEST_CASE("a collective on few of a device's cores slows its compute by as much less", "[sim]") {
  const double work = 4, share = 0.5, few = 0.25, latency = 2;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  Pattern small = one_round(latency, {});
  small.occupancy = few;
  graph.add(traffic_op(graph.pattern(small), 0), {});
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(work + few * (1 - share) * latency));
}

TEST_CASE("of two collectives on a device the one on more cores counts", "[sim]") {
  const double work = 4, share = 0.5, few = 0.25, first = 1, second = 2;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  Pattern small = one_round(second, {});
  small.occupancy = few;
  graph.add(traffic_op(graph.pattern(small), 0), {});
  graph.add(traffic_op(graph.pattern(one_round(first, {})), 0), {});
  const double lost = (1 - share) * first + few * (1 - share) * (second - first);
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(work + lost));
}

TEST_CASE("a collective occupies its devices during its latency too", "[sim]") {
  const double work = 2, share = 0.5, latency = 1;
  OpGraph graph;
  const OpId compute = graph.add(compute_op(0, work), {});
  graph.add(traffic_op(graph.pattern(one_round(latency, {})), 0), {});
  const Trace trace = replay(overlapping(share, 1), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(latency + work - share * latency));
}

TEST_CASE("a copy engine takes nothing from compute and loses nothing to it", "[sim]") {
  const double work = 2, transfer = 1;
  OpGraph graph;
  Pattern copy = one_round(0, {flow_over({1})});
  copy.occupancy = 0;
  const OpId compute = graph.add(compute_op(0, work), {});
  const OpId moved =
      graph.add(traffic_op(graph.pattern(copy), 100 * transfer, OpKind::transfer), {});
  const Trace trace = replay(overlapping(0.5, 0.5), graph);
  CHECK_THAT(trace.finish[index(compute)], exactly(work));
  CHECK_THAT(trace.finish[index(moved)], exactly(transfer));
}

TEST_CASE("a collective slows compute on its members alone", "[sim]") {
  const double work = 1, share = 0.5;
  Platform platform = tiny_platform({}, 2);
  for (Device& device : platform.devices) device.compute_share = share;
  OpGraph graph;
  const OpId member = graph.add(compute_op(0, work), {});
  const OpId other = graph.add(compute_op(1, work), {});
  graph.add(traffic_op(graph.pattern(one_round(10, {}, {0})), 0), {});
  const Trace trace = replay(platform, graph);
  CHECK_THAT(trace.finish[index(member)], exactly(work / share));
  CHECK_THAT(trace.finish[index(other)], exactly(work));
}

TEST_CASE("a slowed engine counts only where it is narrower than the cable behind it", "[sim]") {
  const double engine = 100, cable = 90, bytes = 90;
  const auto share = GENERATE(0.95, 0.8);
  Platform platform = overlapping(1, share);
  platform.links[1].capacity = {cable};
  OpGraph graph;
  graph.add(compute_op(0, 10), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({1, 0})})), bytes), {});
  const std::vector<double> finish =
      numbers_from_worker([&] { return replay(platform, graph).finish; });
  CHECK_THAT(finish[index(collective)], exactly(bytes / std::min(cable, share * engine)));
}

}  // namespace stepsim
