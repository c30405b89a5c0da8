#include "sim/side_by_side.hpp"

#include <array>

#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"

namespace stepsim {
namespace {

constexpr double bandwidth = 10, bytes = 20;

Platform two_links(std::string shared) {
  Platform platform = tiny_platform({bandwidth, bandwidth});
  platform.links[0].name = "node0.port";
  platform.links[1].name = std::move(shared);
  return platform;
}

// Computes for a second and sends over both links.
OpGraph computes_and_sends() {
  OpGraph graph;
  graph.name("work");
  const OpId computed = graph.add(compute_op(0, 1), {});
  graph.add(traffic_op(graph.pattern(one_round(0, {flow_over({0, 1})})), bytes), {computed});
  return graph;
}

SideBySide two_of(const Platform& a, const Platform& b, const OpGraph& graph) {
  return side_by_side(std::array{RunAgain{a, graph, 2}, RunAgain{b, graph, 1}},
                      [](const Link& link) { return !link.name.starts_with("node"); });
}

double end_of(const SideBySide& all, const Trace& trace, std::size_t program, std::size_t time) {
  return trace.finish[index(all.ends[program][time])];
}

}  // namespace

TEST_CASE("programs that share no link run as alone, time after time", "[sim]") {
  const Platform a = two_links("leaf0.up"), b = two_links("leaf1.up");
  const SideBySide all = two_of(a, b, computes_and_sends());
  validate(all.graph, all.platform);
  CHECK(all.platform.links.size() == 4);
  CHECK(all.platform.devices.size() == 2);
  const Trace trace = replay(all.platform, all.graph);
  const double once = 1 + bytes / bandwidth;
  CHECK_THAT(end_of(all, trace, 0, 0), exactly(once));
  CHECK_THAT(end_of(all, trace, 0, 1), exactly(2 * once));
  CHECK_THAT(end_of(all, trace, 1, 0), exactly(once));
}

TEST_CASE("programs share links of one name that are shared, and no others", "[sim]") {
  const Platform a = two_links("leaf0.up"), b = two_links("leaf0.up");
  const SideBySide all = two_of(a, b, computes_and_sends());
  validate(all.graph, all.platform);
  CHECK(all.platform.links.size() == 3);
  CHECK(all.used[0].size() == 2);
  const Trace trace = replay(all.platform, all.graph);
  const double both = 1 + 2 * bytes / bandwidth;
  CHECK_THAT(end_of(all, trace, 0, 0), exactly(both));
  CHECK_THAT(end_of(all, trace, 1, 0), exactly(both));
  // Then the other one has ended.
  CHECK_THAT(end_of(all, trace, 0, 1), exactly(both + 1 + bytes / bandwidth));
}

}  // namespace stepsim
