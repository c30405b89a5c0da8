// Clusters whose every constant a test can name, so that times can be worked out by hand.
#pragma once

#include <cstdint>

#include "topology/cluster.hpp"

namespace stepsim {

template <class Q>
Constant<Q> made_up(double value) {
  return {.value = {value},
          .low = {value},
          .high = {value},
          .grade = Grade::guess,
          .source = "made up for a test"};
}

enum class Fabric : std::uint8_t {
  in_switch,  // every GPU on one switch
  mesh,       // a link between every two GPUs
  pairs,      // a switch for every two GPUs; the pairs meet over PCIe only
};

// Rates in B/s per direction, times in s. Latencies are powers of two: sums of them are exact.
struct TinyCluster {
  Fabric fabric = Fabric::in_switch;
  std::uint32_t gpus = 4;
  std::uint32_t nodes = 1;
  std::uint32_t nics = 0;  // 0: one per GPU
  std::uint32_t leaf_nodes = 1024;
  bool per_rail = true;
  double link = 100e9;
  double pcie = 200e9;  // wide, so that between nodes the port is the limit
  double port = 25e9;
  double thread = 0;  // both directions of a port together; 0: no such limit
  double uplink = 1e15;
  double drive = 50e9;
  double launch = 0x1p-16, step = 0x1p-18, efficiency = 0.75, exchange = 0.5;
  double network_launch = 0x1p-15, network_step = 0x1p-16, network_efficiency = 0.875;
  double nvls_step = 0x1p-17, nvls_efficiency = 0.625;
  double compute_share = 1, collective_share = 1;
};
Cluster tiny_cluster(const TinyCluster& tiny);

// Rank 0 .. n - 1.
std::vector<Rank> all_ranks(const Cluster& cluster);

}  // namespace stepsim
