// A network joins nodes by ports, leaf switches (or dragonfly groups) and the core between them, or
// by switches and cables one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"
#include "topology/switches.hpp"

namespace stepsim {

// Communication is what a collective library costs on a fabric: one fixed time, a time per protocol
// step, and the share of a link's rate that a protocol turns into payload.
struct Protocol {
  std::string name;
  Constant<Seconds> step;      // per algorithm step (inside a node) or network hop
  Constant<Ratio> efficiency;  // payload per byte on the wire

  friend bool operator==(const Protocol&, const Protocol&) = default;
};

struct Communication {
  std::string library;
  Constant<Seconds> launch;
  std::vector<Protocol> protocols;
  Constant<Ratio> exchange;  // share of the rate kept when every rank sends to every other
  struct InSwitch {          // the switch reduces and multicasts
    Constant<Seconds> step;
    Constant<Ratio> efficiency;

    friend bool operator==(const InSwitch&, const InSwitch&) = default;
  };
  std::optional<InSwitch> nvls;
  // Multiprocessors that a collective runs on: in a node, or for each of a node's ports in use.
  std::optional<Constant<Ratio>> channels;
  // This lists for each kind of collective the algorithms that the library considers here.
  std::vector<std::pair<std::string, std::vector<std::string>>> algorithms;

  friend bool operator==(const Communication&, const Communication&) = default;
};

inline const std::vector<std::string> collective_kinds{"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all", "broadcast",  "send_recv"};

Communication read_communication(const Table& table);

// Empty when the fabric names none for this kind.
std::vector<std::string> algorithms_for(const Communication& communication, std::string_view kind);

struct Network {
  std::string name, title;
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
