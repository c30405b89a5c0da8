#include "cli/cluster_options.hpp"

namespace stepsim {

ClusterChoice cluster_choice(const std::string& name, const Options& options) {
  constexpr std::uint32_t most_nodes = 8192;  // 65,536 GPUs take seconds; ten times as many, hours
  return {.name = name,
          .nodes = count_of(options, "nodes", 1, most_nodes),
          .network = options.get("network").value_or(""),
          .platform = options.get("platform").value_or(""),
          .placement = options.get("placement").value_or("")};
}

}  // namespace stepsim
