#include "topology/simgrid_platform.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepsim {
namespace {

std::string in_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}

void add_property(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("    <prop id=\"{}\" value=\"{}\"/>\n", name, in_xml(value));
}

// Writes what the library waits for as properties, since a flow takes latency from none of its
// links.
void add_costs(std::string& text, std::string_view where, const Communication& costs) {
  add_property(text, fmt::format("{}.launch_s", where), fmt::format("{}", costs.launch.number()));
  for (const Protocol& protocol : costs.protocols) {
    add_property(text, fmt::format("{}.{}.step_s", where, protocol.name),
                 fmt::format("{}", protocol.step.number()));
    add_property(text, fmt::format("{}.{}.efficiency", where, protocol.name),
                 fmt::format("{}", protocol.efficiency.number()));
  }
}

void add_host(std::string& text, const Cluster& cluster, Rank rank) {
  const Device device = device_of(cluster, rank);
  const Gpu& gpu = cluster.gpu;
  // SimGrid wants the power at rest, with one core busy, and with all: a GPU has one core.
  const double at_rest = gpu.draw ? gpu.draw->idle.number() : gpu.power.number();
  const double busy = gpu.draw ? gpu.draw->compute.number() : gpu.power.number();
  text += fmt::format("    <host id=\"{}\" speed=\"{}f\">\n", in_xml(device.name),
                      gpu.gemm.rate.number() * device.speed);
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string>{"gpu", gpu.name},
        {"node", cluster.node.name},
        {"memory_bytes", fmt::format("{}", gpu.memory.usable.number())},
        {"wattage_per_state", fmt::format("{0}:{1}:{1}", at_rest, busy)}})
    text += fmt::format("      <prop id=\"{}\" value=\"{}\"/>\n", name, in_xml(value));
  text += "    </host>\n";
}

// This text holds the routes between all ranks; `links` are those on them in the order of their
// numbers.
struct Ways {
  std::vector<LinkId> links;
  std::string text;
};

Ways ways_of(const Cluster& cluster) {
  Ways ways;
  std::vector<std::string> names(link_count(cluster));
  for (Rank from = 0; from < cluster.ranks(); ++from)
    for (Rank to = 0; to < cluster.ranks(); ++to) {
      if (from == to) continue;
      const Path path = collective_route(cluster, from, to);
      if (path.empty()) no_route(cluster, from, to);
      ways.text +=
          fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">",
                      in_xml(device_of(cluster, from).name), in_xml(device_of(cluster, to).name));
      for (const LinkId link : path) {
        std::string& name = names[index(link)];
        if (name.empty()) {
          name = in_xml(link_of(cluster, link).name);
          ways.links.push_back(link);
        }
        ways.text += fmt::format("<link_ctn id=\"{}\"/>", name);
      }
      ways.text += "</route>\n";
    }
  std::ranges::sort(ways.links);
  return ways;
}

constexpr std::string_view head = R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <!-- Links have no latency: a collective waits for launch_s once and for step_s in each of its steps, and a byte of it takes
       1 / efficiency bytes on links. Both directions of a cable are links of their own, shared max-min. -->
  <config>
    <prop id="network/model" value="CM02"/>
    <prop id="network/TCP-gamma" value="0"/>
    <prop id="network/crosstraffic" value="0"/>
    <prop id="network/weight-S" value="0"/>
  </config>
)";

}  // namespace

std::string simgrid_platform(const Cluster& cluster) {
  const Ways ways = ways_of(cluster);
  std::string text(head);
  text += fmt::format("  <zone id=\"{}\" routing=\"Full\">\n", in_xml(cluster.name));
  add_costs(text, "node", cluster.node.collectives);
  if (cluster.network) add_costs(text, "network", cluster.network->collectives);
  for (Rank rank = 0; rank < cluster.ranks(); ++rank) add_host(text, cluster, rank);
  for (const LinkId id : ways.links) {
    const Link link = link_of(cluster, id);
    text += fmt::format("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"0s\"/>\n",
                        in_xml(link.name), link.capacity.value);
  }
  return text + ways.text + "  </zone>\n</platform>\n";
}

}  // namespace stepsim
