// A trace is what a replay observed, one column per field; row i belongs to operation i.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/constant.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/power.hpp"

namespace stepsim {

struct LinkUse {
  double bytes = 0;  // payload carried
  Seconds busy;      // time with at least one flow on it
};

// A stretch of a run that was replayed once for many times.
struct Repeat {
  double begin = 0, period = 0;  // s
  double more = 0;               // times beside the one that was replayed

  double added() const { return more * period; }
  // When that happens in the whole run which was replayed at `time`.
  double whole(double time) const { return time > begin + period ? time + added() : time; }
  // Returns the seconds of the whole run in what was replayed between two moments.
  double seconds(double from, double to) const {
    return to - from + more * std::max(0.0, std::min(to, begin + period) - std::max(from, begin));
  }
};

// PlayedBy says which engines passed the time of one replay or of several, and how they compare.
struct PlayedBy {
  std::uint32_t own = 0, simgrid = 0;  // replays whose times are those of that engine
  std::string version{};               // of SimGrid
  std::optional<double> difference{};  // the largest, as a share of a makespan; nothing: one alone
  std::string furthest{};              // where the traces differ most; asked for by `both` alone
  double simgrid_would_take = 0;       // s, for the replays that are left to the own engine
  // This is the largest between a meter of SimGrid and the integral over the trace, as a share; it
  // is nothing where none was read.
  std::optional<double> energy_difference{};

  // Returns to how many seconds times of the trace are exact. SimGrid ends whatever has less than
  // its precision of 1e-12 s left, and a span has two ends on either side of a comparison.
  double resolution() const { return simgrid > 0 ? 4e-12 : 0; }

  static auto fields(auto& self) {
    return std::tie(self.own, self.simgrid, self.version, self.difference, self.furthest,
                    self.simgrid_would_take, self.energy_difference);
  }
};

// These write the engine as files say it, "SimGrid 3.32" or "own", and read it back.
std::string name_of(const PlayedBy& by);
PlayedBy played_by(std::string_view name);
// Returns the engines of a result that the replays of both went into.
PlayedBy together(const PlayedBy& one, const PlayedBy& other);

struct Trace {
  std::vector<double> ready;   // s: the first of its ranks had everything it waited for
  std::vector<double> start;   // s: all of them had
  std::vector<double> finish;  // s
  std::vector<LinkUse> links;
  Seconds makespan;              // of the whole run
  Repeat repeat;                 // in it; the columns hold that stretch once
  std::uint64_t activities = 0;  // computations, flows and timers that the engine handled
  std::uint64_t encounters = 0;  // for each flow that ended, how many were under way
  Meters meters{};               // read by SimGrid's plugins; empty: nobody asked for them
  PlayedBy by{};

  static auto fields(auto& self) {
    return std::tie(self.ready, self.start, self.finish, self.links, self.makespan, self.repeat,
                    self.activities, self.encounters, self.meters, self.by);
  }
};

// Returns whether each operation is ready, starts and ends in this order, within the run. Times of
// a replay are; those of a file may be anything.
bool times_make_sense(const Trace& trace);

// Returns for each operation the moment when the first of its ranks had done all that this rank had
// to do before it. Until the start it then waited for the other ranks.
std::vector<double> first_arrivals(const OpGraph& graph, const Trace& trace);

// When the lane of a wait had done all that it had to do itself: there it begins to wait for
// others.
double wait_begins(const OpGraph& graph, const Trace& trace, OpId wait);

// A scalar is a named result with its unit: "step time", 1.25, seconds.
struct Scalar {
  std::string name;
  double value = 0;
  Dimension dimension{};
};

// Everything a trace file holds.
struct Run {
  std::string scenario;  // canonical YAML
  Platform platform;
  OpGraph graph;
  Trace trace;
  std::vector<std::uint32_t> lane_sizes;  // ranks that each simulated rank stands for; empty: one
  std::vector<NamedConstant> constants;
  std::vector<Scalar> summary;
};

}  // namespace stepsim
