// Names to values: the catalogue is a folder of data files, and overlays over it.
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

  // "gpus", as `stepsim list` calls it.
  constexpr std::string_view plural() const { return folder.substr(folder.find('/') + 1); }
};
inline constexpr Shelf gpu_shelf{"topology/gpus", "GPU"};
inline constexpr Shelf node_shelf{"topology/nodes", "node"};
inline constexpr Shelf network_shelf{"topology/networks", "network"};
inline constexpr Shelf processor_shelf{"topology/processors", "processor"};
inline constexpr Shelf cluster_shelf{"topology/clusters", "cluster"};

// A catalogue travels as one text: its folders, joined by line ends, the installed one first. Each
// later one is an overlay: an entry in it goes before one of the same name below. (A text and no
// type of its own, because everything that names a catalogue passes it on and only this file looks
// into it; a folder whose name holds a line end is refused where it is given.)
std::string join_folders(std::span<const std::string> folders);
std::vector<std::string> data_folders(const std::string& data);
// These add to the folders where programs of Hugging Face keep the models that they load, and read
// it back; empty: it is not there.
std::string with_hub(const std::string& data, const std::string& folder);
std::string hub_of(const std::string& data);

// Returns a data file by its path below the folders, "topology/variation.yaml": that of the
// uppermost folder that has it; where it should be in the lowest one, if none has.
std::string data_file(const std::string& data, std::string_view path);
// Returns what the folders have at this path, the lowest first: "claims".
std::vector<std::string> data_places(const std::string& data, std::string_view path);

// The files of overlays that an entry is read from, itself and what it is like: none when all of it
// is of the lowest folder.
std::vector<std::string> overlay_files(const std::string& data, const Shelf& shelf,
                                       std::string_view name);
// Does the same for a cluster: itself, its node, GPU and network.
std::vector<std::string> overlay_files(const std::string& data, const Cluster& cluster);
// Writes "not of the installed catalogue: FILE, FILE".
std::string overlay_note(std::span<const std::string> files);
bool is_of_overlay(const std::string& data, const std::string& file);

// File names without ".yaml", sorted.
std::vector<std::string> names_on(const std::string& data, const Shelf& shelf);
// These ask for one name, without looking at all of them.
bool is_on(const std::string& data, const Shelf& shelf, std::string_view name);
std::string file_of(const std::string& data, const Shelf& shelf, std::string_view name);

// Throws UserError with the nearest name when the shelf has no such entry. An entry that is `like`
// another one says only what is different; in an overlay it may be like the one of its own name
// below. What a node's file leaves to its processors is of the first of them, and ranges reach over
// all.
Document open_entry(const std::string& data, const Shelf& shelf, std::string_view name);

// If there is a draw, constants are drawn from their ranges instead of read at their stated values.
using MaybeDraw = std::optional<Draw>;

struct ClusterChoice {
  std::string name{};                    // of a cluster, or of a node with its usual network
  std::optional<std::uint32_t> nodes{};  // default: one
  std::string network{};                 // default: the cluster's or the node's own
  std::optional<std::uint32_t> gpus{};   // the first of each node; default: all
  std::string processor{};               // of each node; default: the cluster's or the node's own
  std::string platform{};                // a file of SimGrid's: its hosts are the nodes
  std::string placement{};               // "0-3,8": where the nodes stand; default: the first ones
};
Cluster load_cluster(const std::string& data, const ClusterChoice& choice,
                     const MaybeDraw& draw = {}, std::span<const GivenConstant> given = {});

}  // namespace stepsim
