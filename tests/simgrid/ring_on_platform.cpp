// This program of SimGrid knows nothing of ours: it loads a platform file, plays a ring all-reduce
// on it, and prints the bus bandwidth in B/s. Usage: FILE BYTES PROTOCOL
// Hosts are called gpu3, or node2.gpu3. On several nodes there is a ring for every GPU of a node:
// ring c comes into an even node at GPU c and leaves it at the one before; odd nodes it passes the
// other way round, so that every crossing stays on one rail.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

std::size_t number_behind(const std::string& name, const std::string& word) {
  const std::size_t at = name.find(word);
  return at == std::string::npos ? 0 : std::stoul(name.substr(at + word.size()));
}

using Nodes = std::map<std::size_t, std::map<std::size_t, sg4::Host*>>;

Nodes nodes_of(const sg4::Engine& engine) {
  Nodes nodes;
  for (sg4::Host* host : engine.get_all_hosts())
    nodes[number_behind(host->get_name(), "node")][number_behind(host->get_name(), "gpu")] = host;
  return nodes;
}

struct Ring {
  std::vector<sg4::Host*> hosts;
};

std::vector<Ring> rings_on(const Nodes& nodes) {
  const std::size_t gpus = nodes.begin()->second.size();
  std::vector<Ring> rings(nodes.size() > 1 ? gpus : 1);
  for (std::size_t c = 0; c < rings.size(); ++c)
    for (const auto& [node, hosts] : nodes)
      for (std::size_t k = 0; k < gpus; ++k)
        rings[c].hosts.push_back(hosts.at((c + (node % 2 == 0 ? k : gpus - 1 - k)) % gpus));
  return rings;
}

double property(const sg4::Engine& engine, const std::string& name) {
  for (const sg4::NetZone* zone : engine.get_netzone_root()->get_children())
    if (const char* value = zone->get_property(name)) return std::stod(value);
  if (const char* value = engine.get_netzone_root()->get_property(name)) return std::stod(value);
  throw std::invalid_argument("the zone has no property " + name);
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  const double bytes = std::stod(argv[2]);
  const std::string protocol = argv[3];
  const Nodes nodes = nodes_of(engine);
  const std::vector<Ring> rings = rings_on(nodes);
  const double n = static_cast<double>(rings.front().hosts.size());
  const double m = static_cast<double>(nodes.size());
  const double moved = 2 * (n - 1) / n * bytes;
  // Most chunks pass every edge between nodes, and so does the one that comes last.
  const double far = m < 2 ? 0 : std::min(m, n - 1);
  double wait = property(engine, "node.launch_s") +
                2 * (n - 1 - far) * property(engine, "node." + protocol + ".step_s");
  if (m > 1)
    wait += property(engine, "network.launch_s") +
            2 * far * property(engine, "network." + protocol + ".step_s");
  sg4::Actor::create("main", rings.front().hosts.front(), [&] {
    std::vector<sg4::CommPtr> flows;
    for (const Ring& ring : rings)
      for (std::size_t i = 0; i < ring.hosts.size(); ++i) {
        sg4::Host* from = ring.hosts[i];
        sg4::Host* to = ring.hosts[(i + 1) % ring.hosts.size()];
        const bool crosses =
            number_behind(from->get_name(), "node") != number_behind(to->get_name(), "node");
        const double efficiency =
            property(engine, (crosses ? "network." : "node.") + protocol + ".efficiency");
        flows.push_back(sg4::Comm::sendto_init(from, to));
        flows.back()->set_payload_size(static_cast<std::uint64_t>(
            std::llround(moved / static_cast<double>(rings.size()) / efficiency)));
      }
    for (const sg4::CommPtr& flow : flows) flow->start();
    for (const sg4::CommPtr& flow : flows) flow->wait();
  });
  engine.run();
  std::printf("%.17g\n", moved / (wait + sg4::Engine::get_clock()));
}
