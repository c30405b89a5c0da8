// A remedy is a change that makes a scenario fit that does not. Each is loaded as `--set` would
// load it, so that whatever is named here can be set.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// If nothing fits, nodes are doubled up to this.
inline constexpr std::uint32_t most_nodes_tried = 64;

// A step keeps its rows by the number of micro-batches, where that comes out even.
struct Remedy {
  std::vector<Setting> settings;
  Fit fit = Fit::oom;  // in the order of the program
  double needed = 0;   // bytes of a GPU
  double rows = 1;     // of a step, over those of the scenario

  static auto fields(auto& self) {
    return std::tie(self.settings, self.fit, self.needed, self.rows);
  }
};

struct RemedyQuestion {
  Catalogue data;
  std::string source;             // path or name
  std::vector<Setting> settings;  // that the scenario has beside it
  const Scenario& scenario;
  std::size_t workers = usual_workers();
  Progress progress{};
};

// Returns the remedies that fit, each alone; of several sizes of a kind the first that does.
std::vector<Remedy> remedies(const RemedyQuestion& question);
// Pairs of changes neither of which fits alone.
std::vector<Remedy> paired_remedies(const RemedyQuestion& question);
// Returns as few nodes as fit, doubled again and again; nothing: up to the most none do.
std::vector<Remedy> more_nodes(const RemedyQuestion& question);

}  // namespace stepsim
