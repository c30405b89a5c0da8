// This finds how much energy a run takes, by what draws it and by the cause that it is drawn for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/power.hpp"
#include "sim/trace.hpp"

namespace stepsim {

enum class Drawer : std::uint8_t { gpus, hosts, network };
inline constexpr std::array<std::string_view, 3> drawer_names{"gpus", "hosts", "network"};
template <class T>
using ByDrawer = std::array<T, drawer_names.size()>;

struct Energy {
  // J: what a cause's operations add, and what ranks draw anyhow while the cause is exposed on
  // them.
  ByCause<ByDrawer<double>> causes{};
  ByDrawer<double> idle{};  // while a rank does nothing
  Watts standing;           // of all ranks while they do nothing

  ByDrawer<double> by_drawer() const;
  double total() const;
};

// Returns the energy of all ranks: `sizes` says how many each replayed rank stands for.
Energy energy_of(const OpGraph& graph, const Trace& trace, std::span<const std::uint32_t> sizes,
                 const RankPower& power);

// Returns what meters of an engine have to read: of one rank of each lane, and each stretch once.
Meters meters_of(const OpGraph& graph, const Trace& trace, std::size_t lanes,
                 const RankPower& power);

}  // namespace stepsim
