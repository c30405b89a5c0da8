// This reads a network as a list of switches and cables, written by hand or expanded from tiers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

struct SwitchNetwork {
  // A line is one direction of a cable.
  struct Line {
    std::string name;  // "leaf0.1>spine0.2"
    std::uint32_t from = 0, to = 0;
    BytesPerSecond capacity{};
    Seconds latency{};

    friend bool operator==(const Line&, const Line&) = default;
  };
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::string> switches;
  std::vector<Line> lines;
  std::uint32_t nodes = 0;              // places for them
  std::uint32_t ports = 1;              // cabled ones of each node
  std::vector<std::uint32_t> attached;  // [node * ports + port]: its switch, or nowhere

  friend bool operator==(const SwitchNetwork&, const SwitchNetwork&) = default;
};

// Reads `tiers`, `switches` and `cables`. Every node has so many ports of that rate.
SwitchNetwork read_switches(const Table& table, std::uint32_t ports, BytesPerSecond port);

}  // namespace stepsim
