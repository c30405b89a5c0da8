#include "topology/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/lists.hpp"

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

Communication read_communication(const Table& table) {
  Communication result;
  result.library = table.choice("library", {"nccl", "rccl"});
  result.launch = table.constant<Seconds>("launch");
  for (const Table& entry : table.tables("protocols"))
    result.protocols.push_back({.name = entry.choice("name", {"ll", "ll128", "simple"}),
                                .step = entry.constant<Seconds>("step"),
                                .efficiency = entry.constant<Ratio>("efficiency")});
  // Both fabrics of a cluster are asked for either, so neither may be left to the other's figures.
  for (const std::string_view name : {"ll", "simple"})
    if (!holds(result.protocols, name, &Protocol::name))
      table.problem("protocols", fmt::format("expected a protocol {}", name));
  for (const Protocol& protocol : result.protocols)
    if (protocol.efficiency.low.value <= 0 || protocol.efficiency.high.value > 1)
      table.problem("protocols", "an efficiency lies above 0 and is at most 1");
  result.exchange = table.constant<Ratio>("exchange");
  if (const auto nvls = table.table_if("nvls"))
    result.nvls = {.step = nvls->constant<Seconds>("step"),
                   .efficiency = nvls->constant<Ratio>("efficiency")};
  if (table.has("channels")) result.channels = table.constant<Ratio>("channels");
  const Table algorithms = table.table("algorithms");
  for (const std::string& kind : collective_kinds)
    if (algorithms.has(kind)) result.algorithms.emplace_back(kind, algorithms.texts(kind));
  return result;
}

std::vector<std::string> algorithms_for(const Communication& communication, std::string_view kind) {
  const auto& all = communication.algorithms;
  const auto place =
      std::ranges::find_if(all, [kind](const auto& row) { return row.first == kind; });
  return place == all.end() ? std::vector<std::string>{} : place->second;
}

}  // namespace stepsim
