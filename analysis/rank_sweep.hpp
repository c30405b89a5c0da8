// This lists each rank's operations as they begin and end, in the order of time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct RankEdge {
  double time = 0;
  std::int8_t step = 0;    // +1: begins, -1: ends
  std::uint8_t level = 0;  // of urgency: 3 kernels, 2 collectives and copies, 1 the rest
  std::uint8_t cause = 0, streaming = 0;
  OpKind kind{};
};

// Returns the edges of each rank's operations in the order of time. What a pipeline stage waits for
// others is `pipeline_bubble`, which no operation has. With `only`, the lists of other ranks are
// empty.
std::vector<std::vector<RankEdge>> edges_by_rank(const OpGraph& graph, const Trace& trace,
                                                 std::size_t ranks, std::optional<Rank> only = {});

// AtWork counts the operations of each cause that are under way, and sets the bit of each such
// cause.
struct AtWork {
  ByCause<int> count{};
  std::uint32_t bits = 0;

  void change(std::size_t cause, int by) {
    count[cause] += by;
    const std::uint32_t bit = std::uint32_t{1} << cause;
    bits = count[cause] > 0 ? bits | bit : bits & ~bit;
  }
};
static_assert(cause_count <= 32);

// This holds the operations of one rank that are under way, by their level of urgency.
struct RankAtWork {
  std::array<AtWork, 4> levels{};

  void change(const RankEdge& edge) { levels[edge.level].change(edge.cause, edge.step); }
  std::uint32_t bits() const { return levels[1].bits | levels[2].bits | levels[3].bits; }
  // Returns the cause that the moment belongs to, one of the most urgent; nothing where the rank is
  // idle.
  std::optional<std::size_t> exposed() const {
    for (std::size_t level = 3; level > 0; --level)
      if (levels[level].bits != 0)
        return static_cast<std::size_t>(std::countr_zero(levels[level].bits));
    return std::nullopt;
  }
};

}  // namespace stepsim
