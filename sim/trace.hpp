// What a replay observed, one column per field; row i belongs to operation i.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/constant.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

struct LinkUse {
  double bytes = 0;  // payload carried
  Seconds busy;      // time with at least one flow on it
};

struct Trace {
  std::vector<double> ready;   // s: the first of its ranks had everything it waited for
  std::vector<double> start;   // s: all of them had
  std::vector<double> finish;  // s
  std::vector<LinkUse> links;
  Seconds makespan;
  std::uint64_t activities = 0;  // computations, flows and timers that the engine handled
};

// Whether each operation is ready, starts and ends in this order, within the run. Times of a replay
// are; those of a file may be anything.
bool times_make_sense(const Trace& trace);

// For each operation the moment when the first of its ranks had all that this rank had to do before
// it. Until the start it then waited for the other ranks.
std::vector<double> first_arrivals(const OpGraph& graph, const Trace& trace);

// A named result with its unit: "step time", 1.25, seconds.
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
