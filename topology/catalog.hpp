// Names to values: the catalogue is a folder of data files, and overlays over it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "topology/cluster.hpp"

namespace stepsim {

// A folder of the catalogue and what its entries are called in messages.
struct Shelf {
  std::string_view folder;    // "topology/gpus"
  std::string_view singular;  // "GPU"
  // Keys that an entry never has from the one that it is like, beside those of every shelf.
  std::span<const std::string_view> own{};

  // "gpus", as `stepsim list` calls it.
  constexpr std::string_view plural() const { return folder.substr(folder.find('/') + 1); }
};
inline constexpr Shelf gpu_shelf{"topology/gpus", "GPU"};
inline constexpr Shelf node_shelf{"topology/nodes", "node"};
inline constexpr Shelf network_shelf{"topology/networks", "network"};
inline constexpr Shelf processor_shelf{"topology/processors", "processor"};
inline constexpr Shelf cluster_shelf{"topology/clusters", "cluster"};

// A Catalogue is the folders with data files, the installed one first. Each later one is an
// overlay: an entry in it goes before one of the same name below. Whoever starts a study builds one
// and hands it down; what is found out from the files is kept with it.
class Catalogue {
 public:
  Catalogue() : Catalogue(std::vector<std::string>()) {}  // of no folder
  // `hub`: where programs of Hugging Face keep the models that they load; empty: nowhere.
  explicit Catalogue(std::vector<std::string> folders, std::string hub = "")
      : all_(std::make_shared<All>(All{std::move(folders), std::move(hub), {}})) {}

  const std::vector<std::string>& folders() const { return all_->folders; }
  const std::string& hub() const { return all_->hub; }

  // Returns a data file by its path below the folders, "topology/variation.yaml": that of the
  // uppermost folder that has it; where it should be in the lowest one, if none has.
  std::string file(std::string_view path) const;
  // Returns what the folders have at this path, the lowest first: "claims".
  std::vector<std::string> places(std::string_view path) const;
  bool is_overlay(std::string_view file) const;

  // Returns the one Value that goes with these folders, made by its default when it is first asked
  // for: who reads them, or computes from what was read, keeps there what takes long to find out
  // again, as a type of its own.
  template <class Value>
  Value& kept() const {
    std::shared_ptr<void>& value = all_->kept[typeid(Value)];
    if (!value) value = std::make_shared<Value>();
    return *static_cast<Value*>(value.get());
  }

 private:
  struct All {
    std::vector<std::string> folders;
    std::string hub;
    std::unordered_map<std::type_index, std::shared_ptr<void>> kept;
  };
  std::shared_ptr<All> all_;  // one for all copies
};

// The files of overlays that an entry is read from, itself and what it is like: none when all of it
// is of the lowest folder.
std::vector<std::string> overlay_files(const Catalogue& data, const Shelf& shelf,
                                       std::string_view name);
// Does the same for a cluster: itself, its node, GPU and network.
std::vector<std::string> overlay_files(const Catalogue& data, const Cluster& cluster);
// Writes "not of the installed catalogue: FILE, FILE".
std::string overlay_note(std::span<const std::string> files);

// File names without ".yaml", sorted.
std::vector<std::string> names_on(const Catalogue& data, const Shelf& shelf);
// These ask for one name, without looking at all of them.
bool is_on(const Catalogue& data, const Shelf& shelf, std::string_view name);
std::string file_of(const Catalogue& data, const Shelf& shelf, std::string_view name);

// Throws UserError with the nearest name when the shelf has no such entry. An entry that is `like`
// another one says only what is different; in an overlay it may be like the one of its own name
// below. What a node's file leaves to its processors is of the first of them, and ranges reach over
// all.
Document open_entry(const Catalogue& data, const Shelf& shelf, std::string_view name);

// If there is a draw, constants are drawn from their ranges instead of read at their stated values.
using MaybeDraw = std::optional<Draw>;

// A cluster has at most so many nodes: beyond it what is kept of each rank alone fills the memory
// of the machine that asks.
inline constexpr std::uint32_t most_nodes = 8192;

struct ClusterChoice {
  std::string name{};                    // of a cluster, or of a node with its usual network
  std::optional<std::uint32_t> nodes{};  // default: one
  std::string network{};                 // default: the cluster's or the node's own
  std::optional<std::uint32_t> gpus{};   // the first of each node; default: all
  std::string processor{};               // of each node; default: the cluster's or the node's own
  std::string platform{};                // a file of SimGrid's: its hosts are the nodes
  std::string placement{};               // "0-3,8": where the nodes stand; default: the first ones
  std::optional<std::uint32_t> cores{};  // of each host that the job has; default: all of them
};
Cluster load_cluster(const Catalogue& data, const ClusterChoice& choice, const MaybeDraw& draw = {},
                     std::span<const GivenConstant> given = {});

}  // namespace stepsim
