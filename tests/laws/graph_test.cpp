// A network is worked out from its leaves here, and given as a list of switches and cables there:
// no collective may tell them apart.
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/wired.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

// Writes leaves under one switch, each with a cable as wide as its uplinks together.
std::string as_tiers(const Cluster& cluster) {
  const Network& network = *cluster.network;
  const std::uint32_t places =
      cluster.placement.empty() ? cluster.nodes : std::ranges::max(cluster.placement) + 1;
  return fmt::format(
      "tiers:\n  - {{name: leaf, members: {}, rails: {}}}\n  - {{name: core, members: {}, "
      "bandwidth: {}}}\n",
      network.leaf.nodes, network.leaf.per_rail ? cluster.node.count(PartKind::nic) : 1,
      (places + network.leaf.nodes - 1) / network.leaf.nodes,
      constant(fmt::format("{:.17g} B/s", network.leaf.uplink.number())));
}

std::vector<CollectivePlan> every_plan(const Cluster& cluster) {
  std::vector<CollectivePlan> plans;
  for (std::size_t kind = 0; kind < collective_kinds.size(); ++kind)
    for (const Algorithm& algorithm : algorithms()) {
      try {
        plans.push_back(
            plan_collective(cluster, static_cast<Collective>(kind), {all_ranks(cluster)},
                            {.algorithm = std::string(algorithm.name), .protocol = "simple"}));
      } catch (const UserError&) {  // does not suit the group
      }
    }
  return plans;
}

std::vector<double> seconds_of(const Cluster& cluster, Folding folding) {
  return numbers_from_worker([&] {
    std::vector<double> all;
    for (const auto& groups : play(cluster, every_plan(cluster), {3e8}, folding).seconds)
      all.insert(all.end(), groups.begin(), groups.end());
    return all;
  });
}

void check_graph(const Cluster& cluster) {
  const Cluster graph = wired(cluster, as_tiers(cluster));
  const std::vector<double> expected = seconds_of(cluster, Folding::automatic);
  REQUIRE(expected.size() >= 6);
  for (const Folding folding : {Folding::automatic, Folding::off}) {
    const std::vector<double> found = seconds_of(graph, folding);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK_THAT(found[i], WithinRel(expected[i], 1e-9));
  }
  for (const CollectivePlan& plan : every_plan(graph)) {
    const Candidate& one = plan.candidates.front();
    const CollectivePlan other = plan_collective(
        cluster, plan.kind, plan.groups, {.algorithm = one.algorithm, .protocol = one.protocol});
    CHECK_THAT(one.cost.per_byte, WithinRel(other.candidates.front().cost.per_byte, 1e-12));
  }
}

TEST_CASE("a graph gives the times of the leaves that it is made from", "[laws]") {
  for (const Cluster& cluster : leafy_clusters()) {
    CAPTURE(cluster.nodes, cluster.node.count(PartKind::nvswitch), cluster.network->leaf.per_rail);
    check_graph(cluster);
  }
}

TEST_CASE("a graph gives the times of the leaves, wherever the nodes stand", "[laws]") {
  for (Cluster cluster : leafy_clusters()) {
    if (cluster.nodes != 4) continue;
    cluster.placement = {5, 0, 4, 8};
    check_graph(cluster);
  }
}

TEST_CASE("a graph gives the times of every network of the catalogue", "[laws]") {
  for (const MachineSize& size : node_machines({2, 3}, 24)) {
    CAPTURE(size.name, size.nodes);
    if (size.nodes > 1) check_graph(load(size));
  }
}

}  // namespace
}  // namespace stepsim
