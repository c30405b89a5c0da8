// These options belong to commands that ask for a cluster and no scenario.
#pragma once

#include "cli/options.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Returns a cluster or node by its name, with what these options say.
ClusterChoice cluster_choice(const std::string& name, const Options& options);

}  // namespace stepsim
