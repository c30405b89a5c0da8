// Names to values: the catalogue is a folder of data files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stepsim {

// A folder of the catalogue and what its entries are called in messages.
struct Shelf {
  std::string_view folder;    // "topology/gpus"
  std::string_view singular;  // "GPU"
};
inline constexpr Shelf gpu_shelf{"topology/gpus", "GPU"};
inline constexpr Shelf node_shelf{"topology/nodes", "node"};
inline constexpr Shelf network_shelf{"topology/networks", "network"};
inline constexpr Shelf cluster_shelf{"topology/clusters", "cluster"};

// File names without ".yaml", sorted.
std::vector<std::string> names_on(const std::string& data, const Shelf& shelf);
std::string file_of(const std::string& data, const Shelf& shelf, std::string_view name);

// Throws UserError with the nearest name when the shelf has no such entry. An entry that is `like`
// another one says only what is different.
Document open_entry(const std::string& data, const Shelf& shelf, std::string_view name);

// Constants drawn from their ranges instead of their stated values.
using MaybeDraw = std::optional<Draw>;

struct ClusterChoice {
  std::string name{};                    // of a cluster, or of a node with its usual network
  std::optional<std::uint32_t> nodes{};  // default: one
  std::string network{};                 // default: the cluster's or the node's own
  std::optional<std::uint32_t> gpus{};   // the first of each node; default: all
};
Cluster load_cluster(const std::string& data, const ClusterChoice& choice,
                     const MaybeDraw& draw = {}, std::span<const GivenConstant> given = {});

}  // namespace stepsim
