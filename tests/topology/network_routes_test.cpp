#include "topology/network_routes.hpp"

#include <fmt/format.h>

#include <map>

#include "tests/support/exactly.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/wired.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

std::vector<std::uint32_t> first_places(std::uint32_t count) {
  std::vector<std::uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0u);
  return places;
}

std::string way_text(const NetworkRoutes& routes, std::uint32_t from, std::uint32_t to) {
  const auto way = routes.way(from, to);
  if (!way) return "none";
  std::string text;
  for (const std::uint32_t line : *way) text += routes.lines[line].name + " ";
  return text;
}

// These leaves of four nodes stand under two spines, to each of which they have two cables.
const std::string two_tiers = fmt::format(
    "tiers:\n  - {{name: leaf, members: 4}}\n"
    "  - {{name: spine, members: 3, switches: 2, cables: 2, bandwidth: {}}}\n",
    constant("10 GB/s"));

TEST_CASE("ports of a leaf take turns among equally short ways", "[topology]") {
  const NetworkRoutes routes = ways_through(switches_in(two_tiers, 1, 25e9), first_places(12), 1);
  CHECK(way_text(routes, 0, 3).empty());
  CHECK(way_text(routes, 0, 4) == "leaf0>spine0.0/0 spine0.0>leaf1/0 ");
  CHECK(way_text(routes, 0, 5) == "leaf0>spine0.0/1 spine0.0>leaf1/0 ");
  CHECK(way_text(routes, 0, 6) == "leaf0>spine0.1/0 spine0.1>leaf1/0 ");
  CHECK(way_text(routes, 1, 7) == way_text(routes, 0, 7));
  // Each cable up has one of the ways from one leaf to the four ports of another.
  std::map<std::uint32_t, int> up;
  for (std::uint32_t to = 8; to < 12; ++to) ++up[routes.way(0, to)->front()];
  CHECK(up.size() == 4);
}

TEST_CASE("a cable of its own goes before what its tier says", "[topology]") {
  const SwitchNetwork network =
      switches_in(two_tiers + fmt::format("cables:\n"
                                          "  - {{between: [leaf0, spine0.1], cables: 0}}\n"
                                          "  - {{between: [leaf1, spine0.0], cables: 1}}\n"
                                          "  - {{between: [leaf1, leaf2], bandwidth: {}}}\n",
                                          constant("3 GB/s")),
                  1, 25e9);
  const NetworkRoutes routes = ways_through(network, first_places(12), 1);
  CHECK(way_text(routes, 0, 6) == "leaf0>spine0.0/0 spine0.0>leaf1 ");
  CHECK(way_text(routes, 4, 8) == "leaf1>leaf2 ");
  CHECK(routes.lines[routes.way(8, 4)->front()].capacity.value == 3e9);
}

TEST_CASE("oversubscription is what comes from below over what leads up", "[topology]") {
  const SwitchNetwork network = switches_in(
      fmt::format("tiers:\n  - {{name: leaf, members: 8, rails: 2}}\n"
                  "  - {{name: spine, members: 2, switches: 4, oversubscription: {}}}\n"
                  "  - {{name: core, members: 3, cables: 2, oversubscription: {}, latency: {}}}\n",
                  constant("2"), constant("4"), constant("1 us")),
      4, 25e9);
  CHECK(network.nodes == 48);
  std::map<std::string, double> capacities;
  for (const SwitchNetwork::Line& line : network.lines) capacities[line.name] = line.capacity.value;
  // A leaf has two ports of each of its 8 nodes, and a cable to each of four spines.
  CHECK_THAT(capacities.at("leaf0.1>spine0.3"), exactly(16 * 25e9 / 2 / 4));
  // A spine has two leaves in each of its two members below, and two cables up.
  CHECK_THAT(capacities.at("spine2.0>core0/1"), exactly(4 * 50e9 / 4 / 2));
  const NetworkRoutes routes = ways_through(network, std::vector{0u, 16u}, 4);
  CHECK_THAT(routes.latency.value, exactly(2e-6));
  CHECK(routes.ends() == 8);
}

TEST_CASE("rails of every tier never meet", "[topology]") {
  const SwitchNetwork network =
      switches_in(fmt::format("tiers:\n  - {{name: leaf, members: 1, rails: 2}}\n"
                              "  - {{name: spine, members: 2, rails: 2, bandwidth: {}}}\n",
                              constant("10 GB/s")),
                  2, 25e9);
  const NetworkRoutes routes = ways_through(network, first_places(2), 2);
  CHECK(way_text(routes, 0, 2) == "leaf0.0>spine0.0 spine0.0>leaf1.0 ");
  CHECK(way_text(routes, 0, 3) == "none");
  Cluster cluster = tiny_cluster({.gpus = 2, .nodes = 2});
  cluster.routes = routes;
  CHECK_THROWS_WITH(no_route(cluster, 0, 3),
                    "no route from rank 0 (node 0 gpu 0) to rank 3 (node 1 gpu 1) on tiny: no way "
                    "from leaf0.0 to "
                    "leaf1.1 over the cables of tiny-network");
  CHECK(collective_route(cluster, 0, 3).empty());
}

TEST_CASE("switches and cables one by one", "[topology]") {
  const SwitchNetwork network = switches_in(
      fmt::format(
          "switches: [{{name: east, nodes: 0-1}}, {{name: west, nodes: '2'}}, {{name: far}}]\n"
          "cables:\n  - {{between: [east, far], bandwidth: {0}}}\n"
          "  - {{between: [far, west], bandwidth: {0}}}\n",
          constant("10 GB/s")),
      2, 25e9);
  const NetworkRoutes routes = ways_through(network, first_places(3), 2);
  CHECK(way_text(routes, 0, 5) == "east>far far>west ");
  CHECK(way_text(routes, 1, 2).empty());
}

TEST_CASE("what a network of switches cannot be", "[topology]") {
  const auto wrong = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(switches_in(text, 2, 25e9), message);
  };
  wrong("tiers: [{name: leaf, members: 4, bandwidth: 3}]\n",
        "network.yaml:1: tiers[0].bandwidth: is not for the first tier: a port of a node is one "
        "cable "
        "to one switch");
  wrong("tiers: [{name: leaf, members: 4}, {name: spine, members: 2}]\n",
        "network.yaml:1: tiers[1].bandwidth: expected either bandwidth or oversubscription");
  wrong("tiers: [{name: leaf, members: 4}]\nswitches: [{name: a}]\n",
        "network.yaml:2: switches: expected either tiers or switches");
  wrong(two_tiers + "cables: [{between: [leaf0, spin0.1], cables: 0}]\n",
        "network.yaml:4: cables[0].between: no switch \"spin0.1\" (did you mean \"spine0.1\"?)");
  wrong(two_tiers + "cables: [{between: [leaf0]}]\n",
        "network.yaml:4: cables[0].between: expected two switches, such as [leaf0, spine1]");
  wrong("switches: [{name: a, nodes: 0-1}, {name: a, nodes: '2'}]\n",
        "network.yaml:1: switches[1].name: there are two switches \"a\"");
  wrong("switches: [{name: a, nodes: 0-1}, {name: b, nodes: '1'}]\n",
        "network.yaml:1: switches[1].nodes: port 0 of node 1 is at a already\n"
        "network.yaml:1: switches[1].nodes: port 1 of node 1 is at a already");
  wrong("switches: [{name: a, nodes: 1-}]\n",
        "network.yaml:1: switches[0].nodes: expected nodes such as 0,1 or 0-7, found \"1-\"");
}

// Every byte crosses the network, as each node has one GPU.
Cluster single_gpus(std::uint32_t nodes) {
  return tiny_cluster({.gpus = 1, .nodes = nodes, .port = 10e9});
}

double seconds_of(const Cluster& cluster, Collective kind, const std::string& algorithm) {
  return numbers_from_worker([&] {
           return play(cluster, {.kind = kind, .algorithm = algorithm}, {1e9}).seconds.front();
         })
      .front();
}

// Three tiers of four have cables as wide as a port: 4:1 at the second and at the third.
const std::string four_to_one = fmt::format(
    "tiers:\n  - {{name: leaf, members: 4}}\n"
    "  - {{name: spine, members: 4, oversubscription: {0}}}\n"
    "  - {{name: core, members: 4, oversubscription: {0}}}\n",
    constant("4"));

TEST_CASE("three tiers of 4:1 give the times of the formula", "[topology]") {
  const Cluster cluster = wired(single_gpus(64), four_to_one);
  const TinyCluster said;
  const double n = 64, wait = said.launch + said.network_launch;
  // The widest way up carries what 16 nodes send to the 48 others.
  CHECK_THAT(seconds_of(cluster, Collective::all_to_all, "direct"),
             exactly(wait + (n - 1) * said.network_step +
                     16 * 48 / n * 1e9 / (10e9 * said.network_efficiency * said.exchange)));
  // Each cable carries one flow around a ring of neighbours.
  const double ring = 2 * (n - 1) / n * 1e9 / (10e9 * said.network_efficiency);
  const double steps = 2 * (n - 1) * said.network_step;
  CHECK_THAT(seconds_of(cluster, Collective::all_reduce, "ring"), exactly(wait + steps + ring));
  // Where every neighbour stands under another spine, 16 flows share the way up.
  Cluster spread = single_gpus(64);
  for (std::uint32_t node = 0; node < 64; ++node)
    spread.placement.push_back(node % 4 * 16 + node / 4);
  CHECK_THAT(seconds_of(wired(spread, four_to_one), Collective::all_reduce, "ring"),
             exactly(wait + steps + 16 * ring));
}

}  // namespace
}  // namespace stepsim
