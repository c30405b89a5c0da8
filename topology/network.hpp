// A network joins nodes by ports, leaf switches (or dragonfly groups) and the core between them, or
// by switches and cables one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/communication.hpp"
#include "topology/switches.hpp"

namespace stepsim {

struct Network {
  std::string name;
  std::string title;
  Constant<BytesPerSecond> port;  // one NIC port, one direction
  // A node has so many ports where its file has more NICs, which share them in turn. 0: each NIC
  // has its own.
  std::uint32_t ports = 0;
  // This is the rate of both directions of a port together, where one thread of a process sends and
  // receives.
  std::optional<Constant<BytesPerSecond>> thread;
  struct Leaf {
    std::uint32_t nodes = 0;          // under one set of leaves, or in one dragonfly group
    bool per_rail = false;            // NIC i of every node goes to leaf i: rails
    Constant<BytesPerSecond> uplink;  // of one leaf towards all others, one direction

    friend bool operator==(const Leaf&, const Leaf&) = default;
  } leaf;
  // These are here where the network's file says every switch and cable, instead of leaves.
  std::optional<SwitchNetwork> switches;
  // Switches and optics draw this for each port of a node, whatever it carries: a switch at rest
  // draws nearly as much as a busy one. None: the file does not say, and no energy is predicted.
  std::optional<Constant<Watts>> draw;
  Communication collectives;

  friend bool operator==(const Network&, const Network&) = default;
};

// Reads a network between nodes of so many NICs.
Network read_network(const Table& table, std::uint32_t nics);

}  // namespace stepsim
