// These options belong to commands that ask for a cluster and no scenario.
#pragma once

#include "cli/options.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr OptionSpec nodes_option{"nodes", "N", "nodes of it that take part (default 1)"};
inline constexpr OptionSpec network_option{"network", "NAME",
                                           "between the nodes, instead of the usual one"};
inline constexpr OptionSpec platform_option{
    "platform", "FILE",
    "instead of a cluster: a platform file of SimGrid, whose hosts name their gpu or node"};
inline constexpr OptionSpec placement_option{
    "placement", "LIST", "which nodes of the machine these are, such as 0-3,8 (default the first)"};

// Returns a cluster or node by its name, with what these options say.
ClusterChoice cluster_choice(const std::string& name, const Options& options);

}  // namespace stepsim
