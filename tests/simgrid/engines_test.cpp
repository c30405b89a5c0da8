// The engine held against SimGrid: programs without any order, and no time that differs.
#include <cmath>
#include <limits>

#include "sim/engine/own/replay.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "sim/ideal.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

constexpr Rank ranks = 8;
constexpr std::uint32_t links = 12;

// Devices of different speed, which collectives slow, and engines which compute slows.
Platform uneven_platform(Dice& dice) {
  Platform platform = tiny_platform({}, ranks);
  for (std::uint32_t i = 0; i < links; ++i)
    platform.links.push_back({.name = "link", .capacity = {1e9 * (1 + dice.roll(4))}});
  for (Rank rank = 0; rank < ranks; ++rank) {
    Device& device = platform.devices[rank];
    device.speed = 1 - 0.1 * dice.roll(3);
    device.compute_share = 1 - 0.2 * dice.roll(3);
    device.collective_share = 1 - 0.2 * dice.roll(3);
    device.engines = {LinkId{rank}};
  }
  return platform;
}

// Returns changes from any moment on, for a while or for good, once or over and over.
std::vector<Change> any_changes(Dice& dice) {
  std::vector<Change> changes(dice.roll(3));
  for (Change& change : changes) {
    change.at = 1e-5 * dice.roll(50);
    if (dice.roll(2) == 0) change.length = 1e-5 * (1 + dice.roll(30));
    if (std::isfinite(change.length) && dice.roll(2) == 0)
      change.period = change.length * (1.5 + dice.roll(3));
    change.share = 0.1 * (1 + dice.roll(9));
  }
  return changes;
}

void let_change(Platform& platform, Dice& dice) {
  for (Link& link : platform.links) {
    if (dice.roll(3) == 0) link.changes = any_changes(dice);
    for (Change& change : link.changes)
      if (dice.roll(4) == 0) change.latency = 1e-6 * dice.roll(5);
  }
  for (Device& device : platform.devices)
    if (dice.roll(3) == 0) device.changes = any_changes(dice);
}

// Some links twice, some flows with a limit, rounds with and without latency, groups of any size.
Pattern any_pattern(Dice& dice) {
  Pattern pattern{.name = "any", .occupancy = 0.5 * dice.roll(3)};
  const Rank first = dice.roll(ranks);
  for (Rank i = 0, size = 1 + dice.roll(4); i < size; ++i)
    pattern.members.push_back((first + i) % ranks);
  for (std::uint32_t round = 0, rounds = 1 + dice.roll(3); round < rounds; ++round) {
    pattern.rounds.push_back({.latency = {1e-6 * dice.roll(4)}});
    for (std::uint32_t i = 0, flows = dice.roll(5); i < flows; ++i) {
      const double share = 1.0 / (1 + dice.roll(3));
      Flow flow = flow_over({dice.roll(links), dice.roll(links), dice.roll(links)}, share);
      if (dice.roll(3) == 0) flow.rate_cap = 1e8 * (1 + dice.roll(8));
      pattern.rounds.back().flows.push_back(flow);
    }
  }
  return pattern;
}

OpGraph any_program(Dice& dice, std::uint32_t size) {
  OpGraph graph;
  for (int i = 0; i < 16; ++i) graph.pattern(any_pattern(dice));
  for (std::uint32_t i = 0; i < size; ++i) {
    const Rank rank = dice.roll(ranks);
    const double seconds = 1e-6 * dice.roll(100);  // equal ones among them, and none at all
    std::vector<OpId> after;
    for (int k = 0; k < 2 && i > 0; ++k) after.push_back(OpId{dice.roll(i)});
    switch (dice.roll(4)) {
      case 0:
        graph.add(host_op(rank, seconds), after);
        break;
      case 1:
        graph.add(traffic_op(PatternId{dice.roll(16)}, 1e4 * dice.roll(100)), after);
        break;
      default:
        graph.add(compute_op(rank, seconds), after);
    }
  }
  return graph;
}

void add_neighbours(OpGraph& graph, Dice& dice) {
  for (std::uint32_t i = 0, count = dice.roll(3); i < count; ++i) {
    Pattern pattern{.name = "neighbour", .rounds = {{}}, .occupancy = 0};
    pattern.rounds.front().flows.push_back(flow_over({dice.roll(links), dice.roll(links)}));
    graph.beside({.pattern = graph.pattern(pattern),
                  .bytes = {1e4 * dice.roll(50)},
                  .at = 1e-5 * dice.roll(50),
                  .period = 1e-4 * dice.roll(5)});
  }
}

void check_same(const std::vector<double>& times, const std::vector<double>& by_simgrid) {
  REQUIRE(times.size() == by_simgrid.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    REQUIRE_THAT(times[i], WithinRel(by_simgrid[i], 1e-9));
  }
}

// Compares every time of a program without order, some causes of which may be free, by both
// engines.
void compare_engines(std::uint64_t seed) {
  CAPTURE(seed);
  Dice dice(seed);
  Platform platform = uneven_platform(dice);
  OpGraph graph = any_program(dice, 20 + 40 * static_cast<std::uint32_t>(seed % 40));
  if (seed % 2 == 1) let_change(platform, dice);
  if (seed % 3 == 1) add_neighbours(graph, dice);
  if (seed % 5 == 1) graph = idealised(graph, CauseSet(1u << dice.roll(8)));
  check_same(everything_in(replay(platform, graph)), numbers_from_worker([&] {
               return everything_in(simgrid_replay(platform, graph, Watched::everything));
             }));
}

}  // namespace

TEST_CASE("a second replay by SimGrid in one process is refused", "[simgrid]") {
  OpGraph graph;
  graph.add(compute_op(0, 1), {});
  const Platform platform = tiny_platform({});
  CHECK_THAT(simgrid_replay(platform, graph, Watched::everything).makespan.value, exactly(1));
  CHECK_THROWS_AS(simgrid_replay(platform, graph, Watched::everything), std::logic_error);
}

TEST_CASE("the engine finds the times that SimGrid finds", "[simgrid]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) compare_engines(seed);
}

TEST_CASE("the engine finds the times that SimGrid finds in 400 programs", "[simgrid][slow]") {
  for (std::uint64_t seed = 40; seed < 440; ++seed) compare_engines(seed);
}

TEST_CASE("programs can be replayed one after the other in a process", "[simgrid]") {
  Dice dice(3);
  const Platform platform = uneven_platform(dice);
  const OpGraph graph = any_program(dice, 200);
  const std::vector<double> once = everything_in(replay(platform, graph));
  CHECK(once == everything_in(replay(platform, graph)));
}

TEST_CASE("a flow that begins under compute has its whole link once that ends", "[simgrid]") {
  // 0.5 s of half the width bring 25 of 100 bytes, the whole width the rest in 0.75 s.
  const double work = 1, share = 0.5, begin = 0.5, bytes = 100;
  Platform platform = tiny_platform({100});
  platform.devices[0].collective_share = share;
  platform.devices[0].engines = {LinkId{0}};
  OpGraph graph;
  graph.add(compute_op(0, work), {});
  const OpId collective =
      graph.add(traffic_op(graph.pattern(one_round(begin, {flow_over({0})})), bytes), {});
  const double end = work + (bytes - (work - begin) * share * 100) / 100;
  CHECK_THAT(replay(platform, graph).finish[index(collective)], exactly(end));
  const auto by_simgrid = numbers_from_worker([&] {
    return std::vector{
        simgrid_replay(platform, graph, Watched::everything).finish[index(collective)]};
  });
  CHECK_THAT(by_simgrid.front(), WithinRel(end, 1e-9));
}

}  // namespace stepsim
