// How much of each device the collectives take that run on it at a moment.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// Of several at once the one that takes most counts: they take turns more than they add up.
class Occupancy {
 public:
  Occupancy(const OpGraph& graph, std::size_t devices);

  // Of a device that computes at `full` alone: that, then its rates beside collectives that take
  // more and more of it.
  std::vector<double> rates(const Device& device, double full) const;
  // One more such collective runs on the device, or (-1) one less.
  void change(Rank rank, double occupancy, int by);
  // Place among `rates` of what runs there now; 0: nothing does.
  std::size_t state(Rank rank) const;

 private:
  std::vector<double> levels_;          // that occur, ascending
  std::vector<std::uint32_t> running_;  // [device x level]
};

}  // namespace stepsim
