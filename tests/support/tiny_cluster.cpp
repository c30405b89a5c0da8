#include "tests/support/tiny_cluster.hpp"

#include <fmt/format.h>

#include <numeric>

namespace stepsim {
namespace {

LinkSpec cable(std::string name, PartKind from, PartKind to, double rate) {
  return {.name = std::move(name),
          .from = from,
          .to = to,
          .wiring = from == to ? Wiring::mesh : Wiring::block,
          .bandwidth = made_up<BytesPerSecond>(rate),
          .reverse = {},
          .total = {}};
}

Communication library(double launch, double step, double efficiency, double exchange,
                      const std::string& usual) {
  Communication result;
  result.library = "nccl";
  result.launch = made_up<Seconds>(launch);
  result.protocols.push_back(
      {.name = "simple", .step = made_up<Seconds>(step), .efficiency = made_up<Ratio>(efficiency)});
  result.exchange = made_up<Ratio>(exchange);
  for (const std::string& kind : collective_kinds)
    result.algorithms.emplace_back(
        kind, std::vector<std::string>{kind == "all_to_all" ? "direct" : usual});
  return result;
}

}  // namespace

Cluster tiny_cluster(const TinyCluster& tiny) {
  Cluster cluster;
  cluster.name = "tiny";
  cluster.nodes = tiny.nodes;
  cluster.gpu.name = "tiny-gpu";
  cluster.gpu.interference = {.compute = made_up<Ratio>(tiny.compute_share),
                              .collective = made_up<Ratio>(tiny.collective_share)};
  Node& node = cluster.node;
  node.name = "tiny-node";
  const auto parts = [&node](PartKind kind) -> std::uint32_t& {
    return node.parts[static_cast<std::size_t>(kind)];
  };
  parts(PartKind::gpu) = tiny.gpus;
  parts(PartKind::pcie_switch) = tiny.gpus;
  parts(PartKind::nic) = tiny.nics == 0 ? tiny.gpus : tiny.nics;
  parts(PartKind::socket) = parts(PartKind::dram) = parts(PartKind::nvme) = 1;
  if (tiny.fabric != Fabric::mesh)
    parts(PartKind::nvswitch) = tiny.fabric == Fabric::pairs ? tiny.gpus / 2 : 1;
  node.links = {cable("nvlink", PartKind::gpu,
                      tiny.fabric == Fabric::mesh ? PartKind::gpu : PartKind::nvswitch, tiny.link),
                cable("pcie", PartKind::pcie_switch, PartKind::gpu, tiny.pcie),
                cable("nic-pcie", PartKind::pcie_switch, PartKind::nic, tiny.pcie),
                cable("uplink", PartKind::socket, PartKind::pcie_switch, tiny.pcie),
                cable("dram", PartKind::dram, PartKind::socket, 4 * tiny.pcie),
                cable("nvme", PartKind::nvme, PartKind::socket, tiny.drive)};
  node.host.copy_start = made_up<Seconds>(tiny.launch);
  node.collectives = library(tiny.launch, tiny.step, tiny.efficiency, tiny.exchange,
                             tiny.fabric == Fabric::mesh ? "direct" : "ring");
  if (tiny.fabric == Fabric::in_switch)
    node.collectives.nvls = {.step = made_up<Seconds>(tiny.nvls_step),
                             .efficiency = made_up<Ratio>(tiny.nvls_efficiency)};
  cluster.graph = lay_out(Catalogue(), node);
  if (tiny.nodes > 1) {
    Network& network = cluster.network.emplace();
    network.name = "tiny-network";
    network.port = made_up<BytesPerSecond>(tiny.port);
    if (tiny.thread > 0) network.thread = made_up<BytesPerSecond>(tiny.thread);
    network.leaf = {.nodes = tiny.leaf_nodes,
                    .per_rail = tiny.per_rail,
                    .uplink = made_up<BytesPerSecond>(tiny.uplink)};
    network.collectives = library(tiny.network_launch, tiny.network_step, tiny.network_efficiency,
                                  tiny.exchange, "ring");
  }
  return cluster;
}

std::vector<Rank> all_ranks(const Cluster& cluster) {
  std::vector<Rank> ranks(cluster.ranks());
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

}  // namespace stepsim
