// Resident memory is what a rank holds from one step to the next.
#pragma once

#include <vector>

#include "sim/op_graph.hpp"
#include "workloads/program/allocator.hpp"
#include "workloads/program/held.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

struct Holding {
  Pool pool = Pool::device;
  Held held{};
  double bytes = 0;
};

// This belongs to one rank: its device, and its share of the node's memory and drives.
struct Resident {
  std::vector<Holding> holdings;  // a class once per pool, none of them empty
  // Mapped on the device when an update begins, where each step gives memory back; else 0.
  double mapped_before_update = 0;

  double in(Pool pool) const;
};

// This is the list as it grows.
struct Holdings {
  Resident resident;

  void add(Pool pool, Held held, double bytes) {
    if (bytes > 0) resident.holdings.push_back({pool, held, bytes});
  }
};

Resident resident_of(const RankPart& rank);

// Bytes of parameters, gradients, master copy and optimizer on the device when an update begins.
double states_of(const RankPart& rank);

AllocatingStreams allocating_streams(const Strategy& strategy);

// Returns what the allocator reserves beyond what is used and cannot give back, as a share.
Constant<Ratio> slack_of(const StepInput& input);
// Returns the allocator as a step finds it that no other came before.
Allocator allocator_of(const RankPart& rank);

}  // namespace stepsim
