// This file lists the states of a device that differ in power, as pstates of a host of SimGrid: the
// plugin host_energy knows the watts of each pstate without load and under load.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/power.hpp"

namespace stepsim {

// DeviceWork is what adds to the power of a device at a moment.
struct DeviceWork {
  int computations = 0, streaming = 0;  // the parts of streaming of all computations together
  int collectives = 0;
};

// A state of a device says which computations run, if any do, and whether collectives run: that
// a computation runs is what SimGrid's load says. Every stream runs one computation at a time, so
// there are as many at once as the device has streams with computations.
class PowerStates {
 public:
  std::size_t count() const { return 2 * mixes_.size(); }
  // Throws std::logic_error on more computations than the program's streams allow.
  std::size_t place(const DeviceWork& work) const;
  // Returns the plugin's property wattage_per_state, for a host that has each state at so many
  // speeds.
  std::string watts(const RankPower& power, std::size_t speeds) const;

 private:
  friend std::vector<PowerStates> power_states(const OpGraph& graph, std::size_t devices);

  struct Mix {
    int computations = 0, streaming = 0;
    friend bool operator==(const Mix&, const Mix&) = default;
  };
  std::vector<Mix> mixes_{{}};  // the first: nothing was computed yet
};

// [device]
std::vector<PowerStates> power_states(const OpGraph& graph, std::size_t devices);

}  // namespace stepsim
