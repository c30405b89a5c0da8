#include "sim/engine/own/replay.hpp"

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"

namespace stepsim {

TEST_CASE("one flow takes its latency plus its bytes over the bandwidth", "[sim]") {
  const double latency = 3e-6, bandwidth = 46e9, bytes = 8e6;
  OpGraph graph;
  const OpId op =
      graph.add(traffic_op(graph.pattern(one_round(latency, {flow_over({0})})), bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  CHECK_THAT(trace.finish[index(op)], exactly(latency + bytes / bandwidth));
  CHECK_THAT(trace.links[0].bytes, exactly(bytes));
  CHECK_THAT(trace.links[0].busy.value, exactly(bytes / bandwidth));
}

TEST_CASE("two equal flows on one link take twice as long as one", "[sim]") {
  const double bandwidth = 50e9, bytes = 1e9;
  OpGraph graph;
  const PatternId one = graph.pattern(one_round(0, {flow_over({0})}));
  graph.add(traffic_op(one, bytes), {});
  graph.add(traffic_op(one, bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  for (const double finish : trace.finish) CHECK_THAT(finish, exactly(2 * bytes / bandwidth));
  CHECK_THAT(trace.links[0].bytes, exactly(2 * bytes));
}

TEST_CASE("a flow that crosses a link twice uses it twice", "[sim]") {
  const double bandwidth = 10e9, bytes = 1e9;
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0, 0})})), bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  CHECK_THAT(trace.finish[0], exactly(2 * bytes / bandwidth));
  CHECK_THAT(trace.links[0].bytes, exactly(2 * bytes));
}

TEST_CASE("a link of weight w serves a flow as w equal flows would be served", "[sim]") {
  const double bandwidth = 10e9, bytes = 1e9, weight = 3;
  Platform platform = tiny_platform({bandwidth});
  platform.links[0].weight = weight;
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), bytes), {});
  const Trace trace = replay(platform, graph);
  CHECK_THAT(trace.finish[0], exactly(weight * bytes / bandwidth));
  CHECK_THAT(trace.links[0].bytes, exactly(weight * bytes));
}

TEST_CASE("flows with unequal paths share max-min", "[sim]") {
  // Link 0 carries 10, link 1 carries 4. Flow a uses 0, flow b both, flow c 1.
  // First b and c get 2 each from link 1, and a the 8 that b leaves of link 0. After 1 s a (8
  // bytes) and c (2 bytes) are done and b has 8 - 2 left, now at the full 4 of link 1: 1 + 6 / 4 s.
  const double wide = 10, narrow = 4;
  OpGraph graph;
  const auto send = [&](std::initializer_list<std::uint32_t> path, double bytes) {
    return graph.add(traffic_op(graph.pattern(one_round(0, {flow_over(path)})), bytes), {});
  };
  const double half = narrow / 2;
  const OpId a = send({0}, wide - half), b = send({0, 1}, 8), c = send({1}, half);
  const Trace trace = replay(tiny_platform({wide, narrow}), graph);
  CHECK_THAT(trace.finish[index(a)], exactly(1));
  CHECK_THAT(trace.finish[index(c)], exactly(1));
  CHECK_THAT(trace.finish[index(b)], exactly(1 + (8 - half) / narrow));
}

TEST_CASE("a flow never exceeds its rate cap and leaves the rest to others", "[sim]") {
  const double bandwidth = 10, cap = 2.5, bytes = 10;
  OpGraph graph;
  Flow slow = flow_over({0});
  slow.rate_cap = cap;
  const OpId capped = graph.add(traffic_op(graph.pattern(one_round(0, {slow})), bytes), {});
  const OpId open = graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0})})), bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  CHECK_THAT(trace.finish[index(capped)], exactly(bytes / cap));
  CHECK_THAT(trace.finish[index(open)], exactly(bytes / (bandwidth - cap)));
}

TEST_CASE("rounds of a pattern follow each other and their latencies add up", "[sim]") {
  const double bandwidth = 10, first = 0.25, second = 0.5, bytes = 20;
  OpGraph graph;
  const Pattern pattern{.name = "two rounds",
                        .members = {0},
                        .rounds = {{.latency = {first}, .flows = {flow_over({0}, 0.5)}},
                                   {.latency = {second}, .flows = {flow_over({0}, 0.25)}}}};
  graph.add(traffic_op(graph.pattern(pattern), bytes), {});
  const Trace trace = replay(tiny_platform({bandwidth}), graph);
  CHECK_THAT(trace.finish[0], exactly(first + second + 0.75 * bytes / bandwidth));
}

TEST_CASE("an operation starts when the last of those before it is done", "[sim]") {
  const double one = 1, two = 2, five = 5;
  OpGraph graph;
  const OpId a = graph.add(compute_op(0, one), {});
  const OpId b = graph.add(compute_op(0, two), {a});
  const OpId c = graph.add(compute_op(1, five), {});
  const OpId join = graph.add(join_op(), {b, c});
  const OpId last = graph.add(compute_op(0, one), {join});
  const Trace trace = replay(tiny_platform({}, 2), graph);
  CHECK_THAT(trace.start[index(b)], exactly(one));
  CHECK_THAT(trace.finish[index(b)], exactly(one + two));
  CHECK(trace.start[index(join)] == trace.finish[index(c)]);
  CHECK(trace.finish[index(join)] == trace.start[index(join)]);
  CHECK_THAT(trace.finish[index(last)], exactly(five + one));
  CHECK_THAT(trace.makespan.value, exactly(five + one));
}

TEST_CASE("what takes nothing is over at once and what sends nothing takes its latency", "[sim]") {
  const double latency = 2e-6;
  OpGraph graph;
  const PatternId pattern = graph.pattern(one_round(latency, {flow_over({0})}));
  const PatternId silent = graph.pattern({.name = "silent", .members = {0}, .rounds = {}});
  const OpId compute = graph.add(compute_op(0, 0), {});
  const OpId host = graph.add(host_op(0, 0), {compute});
  const OpId delay = graph.add(delay_op(0, 0), {host});
  const OpId nothing = graph.add(traffic_op(silent, 1e9), {delay});
  const OpId empty = graph.add(traffic_op(pattern, 0), {nothing});
  const Trace trace = replay(tiny_platform({1e9}), graph);
  for (const OpId op : {compute, host, delay, nothing}) CHECK(trace.finish[index(op)] == 0);
  CHECK_THAT(trace.finish[index(empty)], exactly(latency));
  CHECK(trace.links[0].bytes == 0);
}

TEST_CASE("the host runs ahead of a device that is the slower of the two", "[sim]") {
  const double issue = 5e-6, kernel = 40e-6;
  const int kernels = 100;
  OpGraph graph;
  OpId host{}, device{};
  for (int i = 0; i < kernels; ++i) {
    host = i == 0 ? graph.add(host_op(0, issue), {}) : graph.add(host_op(0, issue), {host});
    device = i == 0 ? graph.add(compute_op(0, kernel), {host})
                    : graph.add(compute_op(0, kernel), {host, device});
  }
  const Trace trace = replay(tiny_platform({}), graph);
  CHECK_THAT(trace.finish[index(host)], WithinRel(kernels * issue, 1e-9));
  CHECK_THAT(trace.finish[index(device)], WithinRel(issue + kernels * kernel, 1e-9));
}

TEST_CASE("kernels shorter than their launch cost the launches", "[sim]") {
  const double issue = 9e-6, kernel = 3e-6;
  const int kernels = 100;
  OpGraph graph;
  OpId host{}, device{};
  for (int i = 0; i < kernels; ++i) {
    host = i == 0 ? graph.add(host_op(0, issue), {}) : graph.add(host_op(0, issue), {host});
    device = i == 0 ? graph.add(compute_op(0, kernel), {host})
                    : graph.add(compute_op(0, kernel), {host, device});
  }
  const Trace trace = replay(tiny_platform({}), graph);
  CHECK_THAT(trace.makespan.value, WithinRel(kernels * issue + kernel, 1e-9));
}

TEST_CASE("a rank of half speed takes twice as long and delays its own group alone", "[sim]") {
  const double seconds = 1, latency = 0.25;
  Platform platform = tiny_platform({}, 4);
  platform.devices[1].speed = 0.5;
  OpGraph graph;
  std::vector<OpId> computed;
  for (Rank rank = 0; rank < 4; ++rank)
    computed.push_back(graph.add(compute_op(rank, seconds), {}));
  const OpId slow = graph.add(traffic_op(graph.pattern(one_round(latency, {}, {0, 1})), 0),
                              {computed[0], computed[1]});
  const OpId fast = graph.add(traffic_op(graph.pattern(one_round(latency, {}, {2, 3})), 0),
                              {computed[2], computed[3]});
  const Trace trace = replay(platform, graph);
  CHECK_THAT(trace.finish[index(computed[1])], exactly(2 * seconds));
  CHECK_THAT(trace.finish[index(slow)], exactly(2 * seconds + latency));
  CHECK_THAT(trace.finish[index(fast)], exactly(seconds + latency));
}

TEST_CASE("a collective is ready when its first member is and starts with its last", "[sim]") {
  const double early = 1, late = 3;
  OpGraph graph;
  const OpId first = graph.add(compute_op(0, early), {});
  const OpId second = graph.add(compute_op(1, late), {});
  const OpId both =
      graph.add(traffic_op(graph.pattern(one_round(0.5, {}, {0, 1})), 0), {first, second});
  const Trace trace = replay(tiny_platform({}, 2), graph);
  CHECK_THAT(trace.ready[index(both)], exactly(early));
  CHECK_THAT(trace.start[index(both)], exactly(late));
}

}  // namespace stepsim
