// Occupancy tracks how much of each device is taken by the collectives that run on it at a moment.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// The one that takes most counts where several run at once: they take turns more than they add up.
class Occupancy {
 public:
  Occupancy(const OpGraph& graph, std::size_t devices);

  // Returns the rates of a device that computes at `full` alone: first that, then its rates beside
  // collectives that take more and more of it.
  std::vector<double> rates(const Device& device, double full) const;
  // One more such collective runs on the device, or (-1) one less.
  void change(Rank rank, double occupancy, int by);
  // Place among `rates` of what runs there now; 0: nothing does.
  std::size_t state(Rank rank) const;

 private:
  std::vector<double> levels_;          // that occur, ascending
  std::vector<std::uint32_t> running_;  // [device x level]
};

// Waits says which operations wait for which others, as a replay needs it: it is found once,
// however often the program is played.
struct Waits {
  explicit Waits(const OpGraph& graph) : successors(graph) {
    counts.reserve(graph.size());
    const auto offsets = graph.offsets();
    for (std::size_t i = 0; i < graph.size(); ++i)
      counts.push_back(static_cast<std::uint32_t>(offsets[i + 1] - offsets[i]));
  }

  Successors successors;
  std::vector<std::uint32_t> counts;  // [operation]: how many others it waits for
};

}  // namespace stepsim
