#include "cli/cluster_options.hpp"

namespace stepsim {

ClusterChoice cluster_choice(const std::string& name, const Options& options) {
  return {.name = name,
          .nodes = count_of(options, nodes_option.name, 1, most_nodes),
          .network = options.get(network_option.name).value_or(""),
          .platform = options.get(platform_option.name).value_or(""),
          .placement = options.get(placement_option.name).value_or("")};
}

}  // namespace stepsim
