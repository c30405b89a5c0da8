// This fits what a collective library costs on a machine to measured collectives.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/fidelity/comparison.hpp"
#include "analysis/studies/fidelity/robust_fit.hpp"

namespace stepsim {

struct FittedCost {
  NamedConstant stated;      // "network.collectives.protocols.simple.step"
  double fitted = 0;         // within its stated range
  double low = 0, high = 0;  // eight of ten fits to rows that stray as these do end between
  bool seen = false;         // by some row: else no row says anything about it
};
struct NetworkFit {
  std::string machine, network;  // network: empty when all rows are of one node
  std::vector<FittedCost> constants;
  std::vector<FittedSource> sources;
};

// Robust least squares over the rows that are about this machine: those of one node, and those over
// its own network. Throws UserError when there are none.
NetworkFit fit_network(const Catalogue& data, const Cluster& machine,
                       std::span<const MeasuredCollective> rows, const CompareOptions& options);

}  // namespace stepsim
