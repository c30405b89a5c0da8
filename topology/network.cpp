#include "topology/network.hpp"

#include <algorithm>

namespace stepsim {

Network read_network(const Table& table, std::uint32_t nics) {
  Network network;
  network.name = table.text("name");
  network.title = table.text("title");
  const Table port = table.table("port");
  network.port = port.constant<BytesPerSecond>("bandwidth");
  network.ports = static_cast<std::uint32_t>(port.integer_or("of_node", 0, 1, 1 << 10));
  if (port.has("thread")) network.thread = port.constant<BytesPerSecond>("thread");
  if (table.has("tiers") || table.has("switches")) {
    if (table.has("leaf"))
      table.problem("leaf", "expected either a leaf, or tiers or switches that say every cable");
    const std::uint32_t ports = network.ports > 0 ? std::min(network.ports, nics) : nics;
    network.switches = read_switches(table, std::max(1u, ports), network.port.value);
  } else {
    const Table leaf = table.table("leaf");
    network.leaf.nodes = static_cast<std::uint32_t>(leaf.integer("nodes", 1, 1 << 20));
    network.leaf.per_rail = leaf.flag_or("per_rail", false);
    network.leaf.uplink = leaf.constant<BytesPerSecond>("uplink");
  }
  if (table.has("draw")) network.draw = table.constant<Watts>("draw");
  network.collectives = read_communication(table.table("collectives"));
  return network;
}

}  // namespace stepsim
