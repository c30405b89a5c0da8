// Bytes over time, the moment when there are most, and the first request that cannot be met.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

// This stands for the operation of changes before the first step, which no graph has.
inline constexpr OpId no_operation{std::numeric_limits<std::uint32_t>::max()};

// One change of what a rank holds. Its words are those of the graph that it was read from.
struct MemoryChange {
  double time = 0;  // s; in program order: the operation's number
  Pool pool = Pool::device;
  std::string_view moment;  // "backward"
  std::string_view at;      // the operation
  std::string_view tensor_class;
  double bytes = 0;       // negative: given back
  OpId op{no_operation};  // of the graph
};
using Timeline = std::vector<MemoryChange>;

inline constexpr std::array device_pool{Pool::device};

// Returns the timeline of one rank. At one instant what an operation gives back is there for the
// next, as in an allocator that follows the program's order.
Timeline timeline_of(const OpGraph& graph, const Trace& trace, Rank rank);
// Returns the timeline without a replay: in program order, as if nothing ran ahead.
Timeline timeline_in_order(const OpGraph& graph, Rank rank);

struct MemoryPeak {
  double bytes = 0;
  double time = 0;                                      // as of the change that brought it about
  std::string phase;                                    // its moment
  std::string name;                                     // its operation
  std::vector<std::pair<std::string, double>> classes;  // at the peak, largest first

  static auto fields(auto& self) {
    return std::tie(self.bytes, self.time, self.phase, self.name, self.classes);
  }
};

struct FailedAllocation {
  std::string moment, name, tensor_class;
  double bytes = 0;
  double before = 0;  // held already
};

// One pass over timelines that follow one another, for the pools that are asked for together.
struct MemoryReading {
  MemoryPeak peak;
  std::vector<std::pair<std::string, double>> moments;  // the most that was held in each, in order
  std::vector<std::pair<std::string, double>> highest;  // of each class, whenever that was
  std::optional<FailedAllocation> failed;               // the first that goes beyond the limit

  double highest_of(std::string_view tensor_class) const;
};
// Reads the timelines together; each change counts `times` as much, once for each of so many ranks.
MemoryReading read_timelines(std::initializer_list<std::span<const MemoryChange>> timelines,
                             std::span<const Pool> pools, double limit, double times = 1);
inline MemoryReading read_timeline(std::span<const MemoryChange> timeline,
                                   std::span<const Pool> pools, double limit) {
  return read_timelines({timeline}, pools, limit);
}

// These return the peak of one rank's device memory: what the program allocates, beside what is
// always there.
MemoryPeak peak_memory(const OpGraph& graph, const Trace& trace, Rank rank);
MemoryPeak peak_memory_in_order(const OpGraph& graph, Rank rank);

}  // namespace stepsim
