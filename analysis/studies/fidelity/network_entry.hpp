// This writes a fitted network or node as an entry of the catalogue.
#pragma once

#include <string>

#include "analysis/studies/fidelity/network_fit.hpp"

namespace stepsim {

// An entry called `name`, like the one that was fitted but for the constants that some row tells,
// with ranges, and how far off the rows are as a comment. Where rows cross nodes it is a network,
// else a node.
std::string network_entry(const NetworkFit& fit, const std::string& name);

// Returns where the entry has to lie under a folder of entries: "topology/networks/NAME.yaml".
std::string place_of_entry(const NetworkFit& fit, const std::string& name);

}  // namespace stepsim
