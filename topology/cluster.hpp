// A cluster is nodes on a network: it says which rank is where, and which links lie between two
// places.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/platform.hpp"
#include "sim/power.hpp"
#include "sim/traffic.hpp"
#include "topology/gpu.hpp"
#include "topology/network.hpp"
#include "topology/network_routes.hpp"
#include "topology/node.hpp"
#include "topology/routes.hpp"

namespace stepsim {

// This is traffic of another job between the ports of two nodes: so many bytes through each port
// that a GPU here uses, again and again.
struct NodeTraffic {
  std::uint32_t from = 0, to = 0;  // nodes
  Bytes bytes{};
  double at = 0, period = 0;  // s

  friend bool operator==(const NodeTraffic&, const NodeTraffic&) = default;
};

// These events change the machine while a step runs. Times count from its beginning.
struct ClusterEvents {
  std::vector<std::pair<LinkId, Change>> links;
  std::vector<std::pair<Rank, Change>> gpus;
  std::vector<NodeTraffic> neighbours;
  std::optional<double> lost_at{};  // s: a GPU or link is lost, and the step ends there
  std::string lost{};               // which

  bool empty() const { return *this == ClusterEvents{}; }
  friend bool operator==(const ClusterEvents&, const ClusterEvents&) = default;
};

struct Cluster {
  std::string name;
  Gpu gpu;
  Node node;
  NodeGraph graph;
  std::optional<Network> network;
  // These are the ways between nodes where the network is known cable by cable; else they are
  // worked out from its leaves, which takes no memory for machines of any size.
  std::optional<NetworkRoutes> routes;
  std::uint32_t nodes = 1;
  std::uint32_t gpus_used = 0;           // on each node, the first ones; 0: all
  std::vector<std::uint32_t> uneven;     // the same where nodes differ; empty: they do not
  std::vector<std::uint32_t> placement;  // where in the machine each node stands; empty: in order
  std::vector<NamedConstant> constants;  // all that were read, with their sources
  // These say what is not as in the files: the speed of each rank's device, empty where all are
  // equal, and the shares that single links have of their capacity.
  std::vector<double> speeds;
  std::vector<std::pair<LinkId, double>> slow_links;
  ClusterEvents events{};

  // Returns where in the machine a node of the job stands.
  std::uint32_t place(std::uint32_t number) const {
    return placement.empty() ? number : placement[number];
  }
  // Returns the GPUs of the node with the most.
  std::uint32_t gpus_per_node() const {
    return gpus_used > 0 ? gpus_used : node.count(PartKind::gpu);
  }
  std::uint32_t ranks() const {
    return uneven.empty() ? nodes * gpus_per_node()
                          : std::accumulate(uneven.begin(), uneven.end(), 0u);
  }
};

// Returns what each rank draws, with its part of the nodes and of the network between them; nothing
// where a file does not say what its part draws. GPUs that take no part are left out.
std::optional<RankPower> power_of(const Cluster& cluster);

// Returns whether both carry the same traffic in the same time: their GPUs may compute faster or
// slower.
bool carry_alike(const Cluster& a, const Cluster& b);

// Returns whether they differ only in the rates and times of links and collectives, and in their
// GPUs.
bool wired_alike(const Cluster& a, const Cluster& b);

// Ranks count up through the GPUs in use, node by node.
struct Place {
  std::uint32_t node = 0;
  PartKind kind = PartKind::gpu;
  std::uint32_t index = 0;

  friend bool operator==(const Place&, const Place&) = default;
};
Place place_of(const Cluster& cluster, Rank rank);
std::string to_text(const Cluster& cluster, const Place& place);  // "node 1 gpu 3"

// The NIC through which a GPU leaves its node.
std::uint32_t nic_of(const Cluster& cluster, std::uint32_t gpu);

// Links are numbered over the whole cluster, and made only when somebody uses them.
std::size_t link_count(const Cluster& cluster);
BytesPerSecond capacity_of(const Cluster& cluster, LinkId id);
// Returns capacity_of() for callers that ask for very many links: how links are numbered is found
// once. The cluster has to outlive it.
std::function<BytesPerSecond(LinkId)> capacities_of(const Cluster& cluster);
// Links of one sort are equally wide, but for those that are slow.
std::function<std::uint32_t(LinkId)> sorts_of(const Cluster& cluster);
Link link_of(const Cluster& cluster, LinkId id);  // with its name

// Returns the links from one place to another, or nothing when no cable leads there.
Path route(const Cluster& cluster, const Place& from, const Place& to);
// Throws UserError that names the two places between which no cable leads.
[[noreturn]] void no_route(const Cluster& cluster, Rank from, Rank to);
// Returns what all routes of a rank to other nodes have in common, and those from there; nothing
// when no cable leads there. It is for networks whose ways are worked out from leaves.
std::optional<FarEnd> far_end(const Cluster& cluster, Rank rank);
// Returns the path between two nodes from port to port, by the network cards that a GPU of this
// number uses in each.
Path network_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to, std::uint32_t gpu);
// Returns the latency of the cables, which every step between nodes waits for beside the library's
// own.
Seconds cable_latency(const Cluster& cluster);
// Returns the route for a collective: as route(), but inside a node the devices' engines at both
// ends belong to it.
Path collective_route(const Cluster& cluster, Rank from, Rank to);
// These lead from a GPU into the switch of its node, and back, for in-switch reduction.
Path to_switch(const Cluster& cluster, Rank rank);
Path from_switch(const Cluster& cluster, Rank rank);

// Returns the device of a rank. Its engines are links of the cluster.
Device device_of(const Cluster& cluster, Rank rank);

}  // namespace stepsim
