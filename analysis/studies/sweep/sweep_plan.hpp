// A plan says which scenarios a sweep asks for: a grid of axes, less the points that break a
// condition.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

// An axis is what is varied: a key, or several that move together.
struct Axis {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> choices;  // [choice][key], YAML; empty: as in the scenario
};

struct SweepPlan {
  std::string scenario;        // path or name
  std::vector<Setting> fixed;  // for all points
  std::vector<Axis> axes;      // the last one runs fastest
  std::vector<std::string> where;

  std::vector<std::string> keys() const;  // of all axes, in order
};

// Reads "cluster.nodes=2:32", "job.micro_batch=1,2,4", "job.learners_per_node=[1],[4,4]". A:B
// counts by one, A:B:4 by four, A:B:*2 doubles.
Axis parse_axis(std::string_view option, std::string_view text);
// Makes several of these, of equal length, one axis.
Axis zip(std::string_view option, std::span<const std::string> texts);

// Reads a file with `scenario`, `set`, `vary`, `zip`, `list` and `where`; docs/sweeps.md has an
// example.
SweepPlan read_sweep_file(const std::string& path);
// Returns whether the file is a sweep's, and not a scenario: it names one.
bool is_sweep_file(const std::string& path);

// These are a point's values in the order of keys().
using SweepValues = std::vector<std::string>;
// Returns the points in the order of the grid. Throws UserError when axes contradict each other,
// when a condition cannot be read, or when nothing is left.
std::vector<SweepValues> expand(const SweepPlan& plan);
std::vector<Setting> settings_of(const SweepPlan& plan, const SweepValues& values);

}  // namespace stepsim
