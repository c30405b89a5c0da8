// Programs in which some causes cost nothing: what a step would take without launches, with free
// gathers, and so on.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/op_graph.hpp"

namespace stepsim {

class CauseSet {
 public:
  constexpr CauseSet() = default;
  constexpr explicit CauseSet(std::uint32_t bits) : bits_(bits) {}

  constexpr bool has(Cause cause) const { return (bits_ >> static_cast<unsigned>(cause) & 1) != 0; }
  constexpr void add(Cause cause) { bits_ |= 1u << static_cast<unsigned>(cause); }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint32_t bits() const { return bits_; }

  friend constexpr bool operator==(CauseSet, CauseSet) = default;
  friend constexpr CauseSet operator|(CauseSet a, CauseSet b) {
    return CauseSet(a.bits_ | b.bits_);
  }

 private:
  std::uint32_t bits_ = 0;
};
// In the order of the enumeration.
std::vector<Cause> members(CauseSet causes);

// Causes of operations that cost anything at all.
CauseSet active_causes(const OpGraph& graph);

// A cause that only costs time at the very beginning, the same on all ranks, before anything else:
// free or not, it takes nothing from the rest and gives it nothing.
struct Beginning {
  Cause cause{};
  Seconds seconds;
};
std::optional<Beginning> beginning_of(const OpGraph& graph);

// The same program, its operations of these causes free: no seconds, no bytes, no latency, and a
// collective that is free slows nobody's kernels. Who waits for whom stays.
OpGraph idealised(const OpGraph& graph, CauseSet causes);

}  // namespace stepsim
