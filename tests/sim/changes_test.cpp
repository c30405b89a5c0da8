// These tests hold changes while a program runs against closed forms: their arithmetic, and both
// engines.
#include "sim/engine/player.hpp"
#include "sim/platform.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"

namespace stepsim {
namespace {

// Checks by each engine when the only operation of a program ends.
void check_end(const Platform& platform, const OpGraph& graph, double end) {
  for (const EngineChoice engine : {EngineChoice::own, EngineChoice::simgrid}) {
    CAPTURE(static_cast<int>(engine));
    CHECK_THAT(Player(engine).play(platform, graph).makespan.value, WithinRel(end, 1e-9));
  }
}

OpGraph one_flow(double bytes, double latency = 0) {
  OpGraph graph;
  graph.add(traffic_op(graph.pattern(one_round(latency, {flow_over({0})})), bytes), {});
  return graph;
}

OpGraph one_kernel(double seconds) {
  OpGraph graph;
  graph.add(compute_op(0, seconds), {});
  return graph;
}

}  // namespace

TEST_CASE("a change holds from its beginning to its end, and again after each period", "[sim]") {
  const std::vector<Change> changes{{.at = 1, .length = 2, .period = 5, .share = 0.5},
                                    {.at = 2, .length = 10, .share = 0.4}};
  CHECK(share_at(changes, 0.9) == 1);
  CHECK(share_at(changes, 1) == 0.5);
  CHECK(share_at(changes, 2) == 0.5 * 0.4);
  CHECK(share_at(changes, 3) == 0.4);
  CHECK(share_at(changes, 6) == 0.5 * 0.4);
  CHECK(share_at(changes, 12.5) == 0.5);
  CHECK(share_at(changes, 13) == 1);
  std::vector<double> moments{0};
  while (moments.size() < 8) moments.push_back(*next_change(changes, moments.back()));
  CHECK(moments == std::vector<double>{0, 1, 2, 3, 6, 8, 11, 12});
  CHECK_FALSE(next_change(std::span(changes).subspan(1), 12));
}

TEST_CASE("a flow over a link that halves ends when arithmetic says", "[sim]") {
  Platform platform = tiny_platform({100});
  platform.links[0].changes = {{.at = 2, .share = 0.5}};
  check_end(platform, one_flow(300), 2 + 100 / 50.0);
}

TEST_CASE("a healed link carries its whole width again, also for what began meanwhile", "[sim]") {
  Platform platform = tiny_platform({100});
  platform.links[0].changes = {{.at = 0, .length = 2, .share = 0.25}};
  check_end(platform, one_flow(150), 2 + 100 / 100.0);
}

TEST_CASE("a device that is slow for half of a kernel", "[sim]") {
  Platform platform = tiny_platform({});
  platform.devices[0].changes = {{.at = 1, .length = 2, .share = 0.5}};
  check_end(platform, one_kernel(4), 1 + 2 + 2);
}

TEST_CASE("changes that come again and again", "[sim]") {
  Platform platform = tiny_platform({100});
  // Half of each second has a fifth of the width: 60 bytes a second in the mean.
  platform.links[0].changes = {{.at = 0, .length = 0.5, .period = 1, .share = 0.2}};
  check_end(platform, one_flow(600), 10);
}

TEST_CASE("a link that answers later delays what begins on it", "[sim]") {
  Platform platform = tiny_platform({100});
  platform.links[0].changes = {{.at = 0, .length = 1, .share = 1, .latency = 0.25}};
  check_end(platform, one_flow(100, 0.5), 0.5 + 0.25 + 1);
}

TEST_CASE("a neighbour's flows take their part of a link, over and over", "[sim]") {
  const Platform platform = tiny_platform({100});
  OpGraph graph = one_flow(1000);
  Pattern pattern{.name = "neighbour", .rounds = {{}}, .occupancy = 0};
  pattern.rounds.front().flows.push_back(flow_over({0}));
  graph.beside({.pattern = graph.pattern(pattern), .bytes = {50}, .at = 1, .period = 2});
  // The flow is alone in the first second; then in each two seconds there is one with 50 bytes a
  // second for each, and one alone: 100 + 6 x 150 bytes.
  check_end(platform, graph, 1 + 12);
}

TEST_CASE("a program that is lost ends there", "[sim]") {
  Platform platform = tiny_platform({100});
  platform.lost_at = 2;
  OpGraph graph = one_flow(300);
  const OpId later = graph.add(compute_op(0, 1), {OpId{0}});
  for (const EngineChoice engine : {EngineChoice::own, EngineChoice::simgrid}) {
    const Trace trace = Player(engine).play(platform, graph);
    CHECK_THAT(trace.makespan.value, WithinRel(2.0, 1e-9));
    CHECK_THAT(trace.finish[0], WithinRel(2.0, 1e-9));
    CHECK_THAT(trace.start[index(later)], WithinRel(2.0, 1e-9));
    CHECK_THAT(trace.links[0].busy.value, WithinRel(2.0, 1e-9));
  }
}

}  // namespace stepsim
