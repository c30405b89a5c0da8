// Traffic is data: who sends how much to whom, over which links, in which order. A collective, a
// copy to host memory and an optimizer that streams through DRAM are all traffic.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/short_list.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// A path lists the links crossed, in order. A link that stands there k times is used with k times
// the flow's rate.
using Path = ShortList<LinkId, 8>;

struct Flow {
  Rank source = 0, target = 0;
  Path path{};       // never empty: nobody sends to himself
  double share = 0;  // payload bytes per byte of the operation
  double wire = 0;   // bytes on the wire per byte of the operation: payload and protocol overhead
  double rate_cap = std::numeric_limits<double>::infinity();  // B/s; a copy engine, a core
  // Flows of the same sort have a `wire` that is the same multiple of `share`; 0: not known.
  std::uint8_t sort = 0;

  friend bool operator==(const Flow&, const Flow&) = default;
};

// A far end holds what all flows of one rank to other places have in common, and those from there.
struct FarEnd {
  Rank rank = 0;
  std::uint32_t place = 0;  // inside of it there are other ways
  std::uint32_t area = 0;   // of places that reach each other without `up` and `down`
  Path out{}, in{};
  LinkId up{}, down{};

  friend bool operator==(const FarEnd&, const FarEnd&) = default;
};

// Every end sends the same to each one in another place: as many ends as there are ranks, not as
// many flows as there are pairs. Folding finds the few kinds of flows in it.
struct Exchange {
  std::vector<FarEnd> ends{};
  double share = 0, wire = 0;  // of each flow
  std::uint8_t sort = 0;

  friend bool operator==(const Exchange&, const Exchange&) = default;
};

// All flows of a round start together after the latency; the next round starts when all are done.
struct Round {
  Seconds latency{};
  std::vector<Flow> flows{};
  Exchange exchange{};  // none in what is replayed

  friend bool operator==(const Round&, const Round&) = default;
};

struct Pattern {
  std::string name{};           // "all_gather ring simple"
  std::vector<Rank> members{};  // the ranks that wait for each other, in group order
  std::vector<Round> rounds{};
  // This says how much of a device the pattern takes while it runs on the device's own cores: 1
  // slows compute down to the device's `compute_share`, one half by half as much, 0 not at all.
  double occupancy = 1;

  friend bool operator==(const Pattern&, const Pattern&) = default;
};

// Between ends of different places.
Flow flow_between(const Exchange& exchange, const FarEnd& from, const FarEnd& to);
// Returns the pattern with the flows of its exchanges one by one.
Pattern spelt_out(Pattern pattern);

}  // namespace stepsim
