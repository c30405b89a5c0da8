// The engine held against SimGrid: programs without any order, and no time that differs.
#include "sim/engine/own/replay.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "sim/ideal.hpp"
#include "tests/support/any_program.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

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
