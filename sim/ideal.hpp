// In an ideal program some causes cost nothing: it says what a step would take without launches,
// with free gathers, and so on.
#pragma once

#include <cstdint>

#include "sim/op_graph.hpp"

namespace stepsim {

class CauseSet {
 public:
  constexpr CauseSet() = default;
  constexpr explicit CauseSet(std::uint32_t bits) : bits_(bits) {}

  constexpr bool has(Cause cause) const { return (bits_ >> static_cast<unsigned>(cause) & 1) != 0; }
  constexpr void add(Cause cause) { bits_ |= 1u << static_cast<unsigned>(cause); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint32_t bits() const { return bits_; }

  friend constexpr bool operator==(CauseSet, CauseSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

// Returns the same program with its operations of these causes free: no seconds, no bytes, no
// latency, and a free collective slows nobody's kernels. The dependencies stay.
OpGraph idealised(const OpGraph& graph, CauseSet causes);

}  // namespace stepsim
