// These tests read platform files of SimGrid as machines. What collectives take on them is worked
// out by hand.
#include "topology/platform.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/xml_elements.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

const Catalogue& data = source_data();
const std::string hosts_are_gpus = R"(<prop id="gpu" value="h100-sxm"/>)";

std::string cluster_xml(const std::string& attributes, const std::string& properties) {
  return fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n"
      "  <cluster id=\"c\" prefix=\"n\" suffix=\"\" speed=\"1Gf\" bw=\"10GBps\" lat=\"1us\" {}>\n"
      "    {}\n  </cluster>\n</platform>\n",
      attributes, properties);
}

std::string zone_xml(const std::string& routing, const std::string& body) {
  return fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"{}\">\n{}</zone>\n</platform>\n",
      routing, body);
}

struct OnPlatform {
  TemporaryFolder folder{};
  std::string file = folder.file("p.xml");

  explicit OnPlatform(const std::string& xml) { put_bytes(file, xml); }
  Cluster load(ClusterChoice choice = {}) const {
    choice.platform = file;
    return load_cluster(data, choice);
  }
};

struct Timing4 {
  double launch = 0, step = 0, efficiency = 0, exchange = 0;
};

// Returns the costs of a large message between nodes of one GPU each.
Timing4 costs_of(const Cluster& cluster) {
  const Communication& network = cluster.network->collectives;
  const Protocol& simple = network.protocols.back();
  return {cluster.node.collectives.launch.number() + network.launch.number(),
          simple.step.number() + cable_latency(cluster).value, simple.efficiency.number(),
          network.exchange.number()};
}

double seconds_of(const Cluster& cluster, Collective kind, const std::string& algorithm) {
  return numbers_from_worker([&] {
           return play(cluster, {.kind = kind, .algorithm = algorithm}, {1e9}).seconds.front();
         })
      .front();
}

// Checks the times of two collectives. The fullest link carries `flows` of an all-to-all's flows.
void check_times(const Cluster& cluster, double n, double flows) {
  REQUIRE(cluster.ranks() == n);
  const Timing4 costs = costs_of(cluster);
  CHECK_THAT(seconds_of(cluster, Collective::all_to_all, "direct"),
             exactly(costs.launch + (n - 1) * costs.step +
                     flows / n * 1e9 / (10e9 * costs.efficiency * costs.exchange)));
  CHECK_THAT(seconds_of(cluster, Collective::all_reduce, "ring"),
             exactly(costs.launch + 2 * (n - 1) * costs.step +
                     2 * (n - 1) / n * 1e9 / (10e9 * costs.efficiency)));
}

TEST_CASE("a fat tree of three tiers 4:1 gives the times of the formula", "[topology]") {
  const OnPlatform platform(
      cluster_xml(R"(radical="0-63" topology="FAT_TREE" topo_parameters="3;4,4,4;1,1,1;1,1,1")",
                  hosts_are_gpus));
  const Cluster cluster = platform.load();
  CHECK_THAT(cable_latency(cluster).value, exactly(6e-6));
  check_times(cluster, 64, 16 * 48);  // the way up from 16 hosts to the 48 others
}

TEST_CASE("a dragonfly gives the times of the formula", "[topology]") {
  // The three groups have three routers with two hosts each, and one cable joins any two groups.
  const OnPlatform platform(cluster_xml(
      R"(radical="0-17" topology="DRAGONFLY" topo_parameters="3,1;1,1;3,1;2")", hosts_are_gpus));
  check_times(platform.load(), 18, 6 * 6);  // from the six hosts of a group to those of another
}

TEST_CASE("a torus gives the times of the formula", "[topology]") {
  // In a ring of six a cable carries, one way round, one flow to a next host, two flows to hosts
  // two cables off and three to opposite ones, which all go the same way round.
  const OnPlatform platform(
      cluster_xml(R"(radical="0-5" topology="TORUS" topo_parameters="6")", hosts_are_gpus));
  check_times(platform.load(), 6, 1 + 2 + 3);
}

TEST_CASE("hosts of a flat cluster share its backbone", "[topology]") {
  const OnPlatform platform(
      cluster_xml(R"(radical="0-3" bb_bw="10GBps" bb_lat="1us")", hosts_are_gpus));
  const Cluster cluster = platform.load();
  const Timing4 costs = costs_of(cluster);
  CHECK_THAT(seconds_of(cluster, Collective::all_to_all, "direct"),
             exactly(costs.launch + 3 * costs.step +
                     12 / 4.0 * 1e9 / (10e9 * costs.efficiency * costs.exchange)));
}

TEST_CASE("of a link that is not shared every flow has all", "[topology]") {
  const OnPlatform platform(cluster_xml(
      R"(radical="0-3" bb_bw="1GBps" bb_lat="1us" bb_sharing_policy="FATPIPE")", hosts_are_gpus));
  const Cluster cluster = platform.load();
  const Timing4 costs = costs_of(cluster);
  CHECK_THAT(seconds_of(cluster, Collective::all_reduce, "ring"),
             exactly(costs.launch + 6 * costs.step + 1.5 * 1e9 / (1e9 * costs.efficiency)));
}

TEST_CASE("a host may be a whole node of the catalogue", "[topology]") {
  const OnPlatform platform(
      cluster_xml(R"(radical="8-11")", R"(<prop id="node" value="h100-8"/>)"));
  const Cluster cluster = platform.load();
  CHECK(cluster.ranks() == 32);
  const Path path = collective_route(cluster, 3, 17);
  CHECK(link_of(cluster, path[0]).name == "node0.pcie.gpu3>pcie_switch3");
  CHECK(capacity_of(cluster, path[2]).value == 10e9);
  CHECK(link_of(cluster, path[4]).name == "node2.nic-pcie.nic1>pcie_switch1");
}

TEST_CASE("nodes of a platform are hosts in the order of their numbers", "[topology]") {
  const OnPlatform platform(cluster_xml(R"(radical="0-11")", hosts_are_gpus));
  const PlatformFile read = read_platform_file(platform.file);
  CHECK(read.hosts[2].name == "n2");
  CHECK(read.hosts[11].name == "n11");
  const Cluster cluster = platform.load({.placement = "9,1-2"});
  CHECK(cluster.nodes == 3);
  CHECK(cluster.routes->starts == std::vector<std::string>{"n9", "n1", "n2"});
  CHECK_THROWS_WITH(platform.load({.placement = "9,12"}),
                    "placement: " + platform.file + " has places for 12 nodes, not 13");
}

std::string two_hosts(const std::string& second) {
  return "  <host id=\"a\" speed=\"1Gf\"><prop id=\"gpu\" value=\"h100-sxm\"/></host>\n" + second +
         "\n  <link id=\"l\" bandwidth=\"1GBps\" latency=\"0\"/>\n"
         "  <route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>\n";
}

void check_refused(const std::string& xml, const std::string& message) {
  const OnPlatform platform(xml);
  CHECK_THROWS_WITH(platform.load(), platform.file + message);
}

TEST_CASE("hosts that do not say what they are", "[topology]") {
  const auto check_host = [](const std::string& host, const std::string& message) {
    check_refused(zone_xml("Full", two_hosts(host)), message);
  };
  check_host(R"(  <host id="b" speed="1Gf"/>)",
             ":6: host: \"b\": expected a property \"gpu\" or \"node\", found none");
  check_host(R"(  <host id="b" speed="1Gf"><prop id="gpus" value="h100-sxm"/></host>)",
             ":6: host: \"b\": expected a property \"gpu\" or \"node\", found \"gpus\"");
  check_host(R"(  <host id="b" speed="1Gf"><prop id="gpu" value="h100-sxn"/></host>)",
             ":6: host: \"b\": no GPU \"h100-sxn\" (did you mean \"h100-sxm\"?)");
  check_host(R"(  <host id="b" speed="1Gf"><prop id="node" value="h100-8"/></host>)",
             ":6: host: \"b\": expected gpu h100-sxm as \"a\" of line 5, found node h100-8");
  const OnPlatform of_cluster(cluster_xml(R"(radical="0-3")", ""));
  CHECK_THROWS_WITH(of_cluster.load(),
                    of_cluster.file +
                        ":4: host: \"n0\": expected a property \"gpu\" or \"node\", "
                        "found none");
}

TEST_CASE("hosts that nothing joins", "[topology]") {
  const std::string third =
      "  <host id=\"b\" speed=\"1Gf\"><prop id=\"gpu\" value=\"h100-sxm\"/></host>\n"
      "  <host id=\"c\" speed=\"1Gf\"><prop id=\"gpu\" value=\"h100-sxm\"/></host>";
  for (const std::string routing : {"Full", "Floyd"}) {
    CAPTURE(routing);
    check_refused(
        zone_xml(routing, two_hosts(third)),
        ":5: host: no way from \"a\" to \"c\" of line 7: expected routes that join all hosts");
  }
  check_refused(zone_xml("Dijkstra", two_hosts(third)),
                ":5: host: SimGrid gives up on the way from \"a\" to \"b\" of line 6: expected "
                "routes that join all hosts");
}

TEST_CASE("what is no platform file", "[topology]") {
  const std::string good = zone_xml("Full", two_hosts(R"(<host id="b" speed="1Gf"/>)"));
  const auto check_changed = [&](const std::string& from, const std::string& to,
                                 const std::string& message) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    check_refused(changed, message);
  };
  check_changed("<link id", "<lnk id",
                ":7: lnk: no element of a platform (did you mean \"link\"?)");
  check_changed("bandwidth=", "bandwith=",
                ":7: link: no attribute \"bandwith\" (did you mean \"bandwidth\"?); expected id, "
                "bandwidth, bandwidth_file, latency, latency_file, state_file or sharing_policy");
  check_changed("</zone>", "", ":10: expected </zone> for line 4, found </platform>");
  check_changed("</platform>", "",
                ":11: the file ends within <platform> of line 3: expected </platform>");
  check_changed("routing=\"Full\"", "routing=Full", ":4: zone: expected routing=\"...\"");
  // A refusal by SimGrid itself is said in the words of its version.
  for (const auto& [from, to, word] : {std::array<std::string, 3>{"1GBps", "1GBs", "GBs"},
                                       {"link_ctn id=\"l\"", "link_ctn id=\"m\"", "m"},
                                       {"routing=\"Full\"", "routing=\"Ful\"", "model"}}) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    const OnPlatform platform(changed);
    CHECK_THROWS_WITH(platform.load(),
                      Contains(platform.file + ":") && Contains("SimGrid: ") && Contains(word));
  }
  check_changed("latency=\"0\"", "latency=\"0\" bandwidth_file=\"x\"",
                ":7: link: bandwidth_file: profiles over time are not modelled; delete it");
  check_changed("<zone", "<config><prop id=\"tracing\" value=\"yes\"/></config><zone",
                ":4: prop: id: setting \"tracing\" is not taken; expected those of network/ alone");
  check_refused(cluster_xml("radical=\"0-1023,2000\"", hosts_are_gpus),
                ":4: cluster: expected at most 1024 hosts, found more");
  check_refused(cluster_xml("radical=\"0-x\"", hosts_are_gpus),
                ":4: cluster: radical: expected a whole number, found \"x\"");
  check_refused("no XML at all\n", ":2: expected an element such as <platform>, found none");
  check_refused(zone_xml("Full", ""), ": expected hosts, found none");
}

TEST_CASE("elements, attributes and lines of XML", "[topology]") {
  const auto elements = xml_elements(
      "<?xml version='1.0'?>\n<!-- a\n< b -->\n<a b = 'c\"'\n "
      "d=\"&lt;&amp;\"><![CDATA[<x>]]>\n<e/></a >\n",
      "x.xml");
  REQUIRE(elements.size() == 2);
  CHECK(elements[0].line == 4);
  CHECK(elements[0].attribute("b") == "c\"");
  CHECK(elements[0].attribute("d") == "<&");
  CHECK(elements[1].name == "e");
  CHECK(elements[1].line == 6);
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{"<a><!-- b</a>",
                                            "x.xml:1: a comment begins here and never "
                                            "ends: expected \"-->\""},
        {"<a></a>\n<b/>", "x.xml:2: <b> stands outside of <a>"},
        {"</a>", "x.xml:1: </a> ends nothing"},
        {"<a\nb></a>", "x.xml:2: a: expected b=\"...\""},
        {"<a <b/></a>",
         "x.xml:1: expected an attribute or \">\" in <a of line 1, found \"<b/></a>\""},
        {"< a/>", "x.xml:1: expected the name of an element behind \"<\", found \" a/>\""}})
    CHECK_THROWS_WITH(xml_elements(text, "x.xml"), message);
}

}  // namespace
}  // namespace stepsim
