// The plugins host_energy and link_energy of SimGrid meter a replay: they integrate power over
// SimGrid's own clock and load.
//  - host_energy adds up watts whenever a host's load or pstate changes, so a device needs nothing
//    but a pstate for each mix of work that differs in power.
//  - link_energy looks at a link when a flow on that link starts or ends, and takes the load of
//    this moment for all the time since it looked last. A link whose flows change their rates
//    because of others elsewhere would be wrong, so links that draw by their use are read at every
//    step of the clock, which SimGrid announces before it changes any load.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/engine/simgrid/versions.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
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

class EnergyMeters {
 public:
  // The plugins meter what is created after this.
  EnergyMeters(const Draws& draws, const OpGraph& graph, const Platform& platform);

  // Returns the speeds that a device has beside collectives, each in all states of power.
  std::vector<double> speeds(Rank rank, const std::vector<double>& rates) const;
  // Has the plugin meter a device of so many speeds, which is not sealed yet.
  void watch(Rank rank, sg4::Host* device, std::size_t rates);
  // Adds the part of the last device in its node and in the network, as a host and a link that
  // carry nothing.
  void add_standing(sg4::NetZone& zone, const std::string& host, const std::string& port);
  // Has the plugin meter a link, which is not sealed yet and whose stated bandwidth is so many
  // times its true one.
  void watch(LinkId id, sg4::Link* link, double stated_width);
  // Tells whether each link is metered by itself.
  bool apart() const { return !draws_.links.empty(); }

  void begins(const Op& op) { count(op, +1); }
  void ends(const Op& op) { count(op, -1); }
  void set_speed(Rank rank, std::size_t speed);
  // Tells SimGrid what has changed at this instant.
  void settle();

  // Returns what was drawn until then, which is now or, where SimGrid stopped just before, a little
  // later.
  Meters read(double until) const;

 private:
  struct Watched {
    sg4::Host* device = nullptr;
    sg4::Host* host = nullptr;
    sg4::Link* port = nullptr;
    DeviceWork work{};
    DeviceWork mix{};  // the last that computed
    int updates = 0;
    std::size_t speed = 0, state = 0;
    bool changed = false;
  };
  struct WatchedLink {
    LinkId id{};
    sg4::Link* link = nullptr;
  };

  void count(const Op& op, int by);
  Watched& change(Rank rank);
  void apply(Watched& each, const PowerStates& states);

  const Draws draws_;
  const OpGraph& graph_;
  std::vector<PowerStates> states_;
  std::vector<Watched> ranks_;
  std::vector<Rank> changed_;
  std::vector<WatchedLink> links_;
};

}  // namespace stepsim
