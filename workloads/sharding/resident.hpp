// What a rank holds from one step to the next.
#pragma once

#include <vector>

#include "sim/op_graph.hpp"
#include "workloads/program/held.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

struct Holding {
  Pool pool = Pool::device;
  Held held{};
  double bytes = 0;
};

// Of one rank: its device, and its share of the node's memory and drives.
struct Resident {
  std::vector<Holding> holdings;  // a class once per pool, none of them empty

  double in(Pool pool) const;
};

// The list as it grows.
struct Holdings {
  Resident resident;

  void add(Pool pool, Held held, double bytes) {
    if (bytes > 0) resident.holdings.push_back({pool, held, bytes});
  }
};

Resident resident_of(const RankPart& rank);

// Bytes of parameters, gradients, master copy and optimizer on the device when an update begins.
double states_of(const RankPart& rank);

// Streams of a framework that ask its allocator for memory, and on which of them something of this
// class is made: kernels, gathers, reductions.
inline constexpr std::size_t allocating_streams = 3;
std::size_t allocating_stream(const Strategy& strategy, std::string_view held);

// What the allocator reserves beyond what is used, as a share.
const Constant<Ratio>& slack_of(const StepInput& input);

}  // namespace stepsim
