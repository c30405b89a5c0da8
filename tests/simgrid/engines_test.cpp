// The engine held against SimGrid: programs without any order, and no time that differs.
#include <cmath>
#include <limits>

#include "sim/engine/own/replay.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
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

void check_same(const std::vector<double>& times, const std::vector<double>& by_simgrid) {
  REQUIRE(times.size() == by_simgrid.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    REQUIRE_THAT(times[i], WithinRel(by_simgrid[i], 1e-9));
  }
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
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Platform platform = uneven_platform(dice);
    const OpGraph graph = any_program(dice, 20 + 40 * static_cast<std::uint32_t>(seed));
    check_same(everything_in(replay(platform, graph)), numbers_from_worker([&] {
                 return everything_in(simgrid_replay(platform, graph, Watched::everything));
               }));
  }
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
