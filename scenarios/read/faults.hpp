// Faults are GPUs and links of a scenario's machine that are slower than its files say, or become
// so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct Variation {
  Constant<Ratio> gpu_time;  // spread of a kernel's time between GPUs
};

// Puts `slow_gpus`, `slow_links`, `events` and `vary` of a scenario's cluster block into its
// cluster.
void read_faults(const Table& cluster, const Variation& variation, Scenario& scenario);
// Returns whether any of them is asked for.
bool asks_for_faults(const Table& cluster);

// These are faults that a run may have without its file saying so: workloads/faults/ has a file for
// each.
inline constexpr Shelf fault_shelf{"workloads/faults", "fault"};

struct FaultKind {
  std::string name;  // "one-slow-gpu"
  std::string says;  // "one GPU is slower than the others"
  double prior = 0;
  std::int64_t gpus = 1, nodes = 1;          // that a run needs to have it, at least
  std::vector<std::vector<Setting>> levels;  // how bad it may be; "x0.5" is of a constant's value
  // The logarithm of the quotient between long and short lines' times, of eight in ten.
  double spread = 0;
  std::vector<std::string> evidence;  // words of a log that speak for it
  std::string test, shows, cure;
};

// A healthy run's lines differ by so much.
inline constexpr double healthy_spread = 0.03;

// Throws UserError with every problem of a file.
FaultKind parse_fault_kind(std::string_view text, const std::string& file, const std::string& name);
std::vector<FaultKind> fault_kinds(const Catalogue& data);

// Returns the level as settings of this scenario: what is no constant of it is left out, and a
// level of which nothing is left is empty.
std::vector<Setting> settings_of_level(const std::vector<Setting>& level, const Scenario& scenario);

}  // namespace stepsim
