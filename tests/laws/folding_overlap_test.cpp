// These tests fold programs without any order: collectives of several kinds, copies and kernels
// that begin while others run, on every node of the catalogue.
#include <map>

#include "sim/base/lists.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

constexpr std::array collective_streams{Stream::gather, Stream::reduce, Stream::all_to_all,
                                        Stream::replicas, Stream::tensor};

// Returns the groups of a collective: all ranks, those of each node, those with the same place in
// all nodes, or neighbours in twos.
std::vector<Group> any_groups(const Cluster& cluster, Dice& dice) {
  const std::uint32_t in_node = cluster.gpus_per_node();
  const std::uint32_t by = dice.roll(4);
  std::map<std::uint32_t, Group> groups;
  for (const Rank rank : all_ranks(cluster))
    groups[by == 0   ? 0
           : by == 1 ? rank / in_node
           : by == 2 ? rank % in_node
                     : rank / 2]
        .push_back(rank);
  std::vector<Group> list;
  for (auto& [key, group] : groups)
    if (group.size() > 1) list.push_back(std::move(group));
  return list.empty() ? std::vector<Group>{all_ranks(cluster)} : list;
}

std::vector<CollectivePlan> any_plans(const Cluster& cluster, Dice& dice) {
  constexpr std::array kinds{Collective::all_gather, Collective::reduce_scatter,
                             Collective::all_reduce, Collective::all_to_all};
  std::vector<CollectivePlan> plans;
  for (const Collective kind : kinds)
    plans.push_back(plan_collective(cluster, kind, any_groups(cluster, dice)));
  plans.push_back(plan_copy(cluster, Copy::h2d, all_ranks(cluster)));
  plans.push_back(plan_copy(cluster, Copy::d2h, all_ranks(cluster)));
  return plans;
}

// Returns a program that is the same for every rank, and otherwise without any order.
OpGraph any_program(const Traffic& traffic, Dice dice) {
  ProgramBuilder builder(traffic);
  for (std::int16_t number = 0; number < 60; ++number) {
    Op op{.layer = number};
    const std::uint32_t what = dice.roll(8);
    if (what < 3) {
      op.kind = OpKind::compute;
      op.stream = Stream::compute;
      op.seconds = {1e-4 * (1 + dice.roll(40))};
      builder.everywhere(op);
    } else if (what < 4) {
      op.kind = OpKind::host;
      op.stream = Stream::host;
      op.seconds = {1e-5 * (1 + dice.roll(10))};
      builder.everywhere(op);
    } else {
      const std::size_t plan = dice.roll(static_cast<std::uint32_t>(traffic.plans.size()));
      op.kind = plan < 4 ? OpKind::collective : OpKind::transfer;
      op.stream = plan < 4 ? collective_streams[dice.roll(collective_streams.size())]
                           : (plan == 4 ? Stream::h2d : Stream::d2h);
      op.bytes = {1e6 * (1 + dice.roll(200))};
      builder.collective(plan, op, dice.roll(2) == 0 ? Stream::host : Stream::compute);
      if (dice.roll(3) == 0) builder.wait(Stream::compute, op.stream);
    }
  }
  return builder.take();
}

// Returns when each operation of the program ended on each rank.
std::vector<double> ends(const Cluster& cluster, std::uint64_t seed, Folding folding) {
  Dice dice(seed);
  const Traffic traffic = make_traffic(machinery_of(cluster), any_plans(cluster, dice), folding);
  const OpGraph graph = any_program(traffic, dice);
  const Trace trace = replay(traffic.folded.platform, graph, Watched::times);
  std::map<std::pair<std::int16_t, Rank>, double> done;  // [operation of the program, lane]
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.layer < 0) continue;
    if (op.pattern == no_pattern)
      done[{op.layer, op.rank}] = trace.finish[i];
    else
      for (const Rank lane : graph.patterns()[index(op.pattern)].members)
        done[{op.layer, lane}] = trace.finish[i];
  }
  std::vector<double> all;
  for (std::int16_t number = 0; number < 60; ++number)
    for (const Rank lane : traffic.folded.lane_of) {
      const auto place = done.find({number, lane});
      all.push_back(place == done.end() ? -1 : place->second);
    }
  return all;
}

void check_same(const Cluster& cluster, std::uint64_t seed) {
  CAPTURE(cluster.node.name, cluster.nodes, seed);
  const std::vector<double> whole = ends(cluster, seed, Folding::off);
  const std::vector<double> folded = ends(cluster, seed, Folding::automatic);
  REQUIRE(folded.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i / cluster.ranks(), i % cluster.ranks());
    REQUIRE_THAT(folded[i], WithinRel(whole[i], 1e-9));
  }
}

void check_machines(const std::vector<std::uint32_t>& nodes, std::uint32_t most_ranks,
                    std::uint64_t seeds) {
  std::size_t machines = 0;
  for (const MachineSize& size : node_machines(nodes, most_ranks)) {
    const Cluster cluster = load(size);
    if (cluster.ranks() < 2) continue;
    ++machines;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) check_same(cluster, seed);
  }
  CHECK(machines >= 25);
}

}  // namespace

TEST_CASE("folding leaves collectives and kernels that overlap in any way as they are", "[laws]") {
  check_machines({1}, 8, 3);
}

TEST_CASE("folding leaves what overlaps on several nodes as it is", "[laws][slow]") {
  check_machines({1, 2, 3}, 24, 12);
}

}  // namespace stepsim
