// This writes a cluster as a platform file that programs of SimGrid load.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace stepsim {

// Writes every GPU as a host and every link that a collective can cross as a link, and gives every
// two hosts the route that the collectives of this program take. Throws UserError where two have
// none.
std::string simgrid_platform(const Cluster& cluster);

// The file holds a route for every two GPUs; with more of them it would take minutes to load.
inline constexpr std::uint32_t most_exported_gpus = 512;

}  // namespace stepsim
