#include "topology/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/number_list.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/platform.hpp"
#include "topology/processor.hpp"

namespace stepsim {
namespace {

// Constants keep the place they came from in their name: "node.links.xgmi.bandwidth".
void collect(std::vector<NamedConstant>& all, const Document& document, std::string_view prefix) {
  for (NamedConstant constant : document.constants()) {
    constant.name = fmt::format("{}.{}", prefix, constant.name);
    all.push_back(std::move(constant));
  }
}

// Before a document is read: which of its constants are not as it says.
void prepare(Document& document, const MaybeDraw& draw, std::span<const GivenConstant> given,
             std::string_view scope) {
  if (draw) document.draw_constants(*draw, scope);
  document.give_constants(given, scope);
}

std::string entry_file(const std::string& folder, const Shelf& shelf, std::string_view name) {
  return fmt::format("{}/{}/{}.yaml", folder, shelf.folder, name);
}

std::vector<std::string> names_in(std::span<const std::string> folders, const Shelf& shelf) {
  constexpr std::string_view ending = ".yaml";
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    const std::string place = fmt::format("{}/{}", folder, shelf.folder);
    if (!is_there(place)) continue;
    for (const std::string& file : names_in_folder(place))
      if (file.ends_with(ending)) names.push_back(file.substr(0, file.size() - ending.size()));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// An entry that is like one that is like another: more links than this are a circle.
constexpr int longest_chain = 8;

using Folders = std::span<const std::string>;

// Returns how many folders are left when the uppermost that has the file is the last; 0: none has
// it.
std::size_t folders_up_to(Folders folders, const Shelf& shelf, std::string_view name) {
  while (!folders.empty() && !is_there(entry_file(folders.back(), shelf, name)))
    folders = folders.first(folders.size() - 1);
  return folders.size();
}

// A name leads nowhere else.
bool has_entry(Folders folders, const Shelf& shelf, std::string_view name) {
  return name.find('/') == std::string_view::npos && folders_up_to(folders, shelf, name) > 0;
}

// One link of a chain: the file, and the folders in which what it is like is looked for.
struct EntryPlace {
  std::string file;
  Folders below;
};

EntryPlace place_of_entry(Folders folders, const Shelf& shelf, std::string_view name) {
  const std::size_t count = std::max<std::size_t>(1, folders_up_to(folders, shelf, name));
  return {entry_file(folders[count - 1], shelf, name), folders.first(count - 1)};
}

struct Parts {
  std::string node, network, processor;
  std::uint32_t largest = 0;  // 0: no limit is known
};

// A name is a cluster, which says its node and network, or a node alone.
Parts parts_of(const Catalogue& data, const std::string& name) {
  const Folders folders = data.folders();
  if (has_entry(folders, cluster_shelf, name)) {
    const Document document = open_entry(data, cluster_shelf, name);
    const Table root = document.root();
    root.text("name");
    root.text("title");
    root.text_or("note", "");
    Parts parts{root.text("node"), root.text("network"), root.text_or("processor", ""),
                static_cast<std::uint32_t>(root.integer("nodes", 1, 1 << 20))};
    document.finish();
    return parts;
  }
  if (has_entry(folders, node_shelf, name)) return {name, "", "", 0};
  std::vector<std::string> all = names_in(folders, node_shelf);
  append(all, names_in(folders, cluster_shelf));
  throw UserError(fmt::format(
      "no cluster or node \"{}\"{}; `stepsim list nodes` and `stepsim list clusters` name them",
      name, did_you_mean(name, all)));
}

// A path is of a file below the folders from which several entries start, and which is none itself.
bool is_common_file(std::string_view like) {
  return like.find('/') != std::string_view::npos;
}

// Returns the uppermost such file; "": none has it.
std::string common_file(Folders folders, std::string_view like) {
  for (const std::string& folder : std::views::reverse(folders))
    if (std::string file = fmt::format("{}/{}.yaml", folder, like);
        like.find("..") == std::string_view::npos && is_there(file))
      return file;
  return "";
}

Document open_chain(Folders all, Folders folders, const Shelf& shelf, std::string_view name,
                    int links) {
  const auto none = [&](std::string_view wanted) {
    return fmt::format("no {} \"{}\"{}", shelf.singular, wanted,
                       did_you_mean(wanted, names_in(all, shelf), shelf.plural()));
  };
  if (!has_entry(all, shelf, name)) throw UserError(none(name));
  const EntryPlace place = place_of_entry(folders, shelf, name);
  Document document = read_document(place.file);
  const Table root = document.root();
  if (const std::string own = root.text_or("name", name); own != name)
    root.problem("name",
                 fmt::format("expected \"{}\", as the file is called, found \"{}\"", name, own));
  const std::string like = root.text_or("like", "");
  if (like.empty()) return document;
  const auto reject = [&](std::string message) {
    throw UserError({{document.file(), 0, "like", std::move(message)}});
  };
  std::vector<std::string> own_keys{"name", "title", "like", "note"};
  own_keys.insert(own_keys.end(), shelf.own.begin(), shelf.own.end());
  if (is_common_file(like)) {
    const std::string file = common_file(all, like);
    if (file.empty()) reject(fmt::format("no file {}.yaml in the catalogue", like));
    document.inherit(read_document(file), own_keys);
    return document;
  }
  const bool own_name = like == name;
  if (links == longest_chain || (own_name && folders_up_to(place.below, shelf, name) == 0))
    reject("entries that are like each other form a circle");
  if (!has_entry(all, shelf, like)) reject(none(like));
  document.inherit(open_chain(all, own_name ? place.below : all, shelf, like, links + 1), own_keys,
                   {"defaults"});
  return document;
}

constexpr std::string_view host_speed = "host.core_speed";

// Gives the node its processors' speed. If it is not known which of several a machine has, the
// range reaches over theirs.
void lay_processors(const Catalogue& data, Document& node, std::span<const std::string> names) {
  Constant<Ratio> range;
  for (const std::string& name : names) {
    const bool first = name == names.front();
    const Document entry = open_entry(data, processor_shelf, name);
    const Constant<Ratio> speed = read_processor(entry.root()).core_speed;
    entry.finish();
    if (first) node.take(host_speed, entry);
    range.low.value = first ? speed.low.value : std::min(range.low.value, speed.low.value);
    range.high.value = first ? speed.high.value : std::max(range.high.value, speed.high.value);
  }
  node.set(fmt::format("{}.low", host_speed), fmt::format("{}", range.low.value));
  node.set(fmt::format("{}.high", host_speed), fmt::format("{}", range.high.value));
}

// Reads the node with that processor; empty: with its usual ones, unless it says itself how fast
// its host is.
Document open_node(const Catalogue& data, std::string_view name, const std::string& processor) {
  const Folders folders = data.folders();
  Document node = open_chain(folders, folders, node_shelf, name, 0);
  if (!processor.empty()) {
    node.set("processors", fmt::format("[{}]", processor));
    lay_processors(data, node, std::array{processor});
  } else if (const auto usual = node.root().texts_or("processors");
             !usual.empty() && node.root().is_mapping("host") && !node.peek(host_speed)) {
    lay_processors(data, node, usual);
  }
  return node;
}

// Returns where the job's nodes stand among those of the machine. 0 as `largest`: nobody knows how
// many it has.
std::vector<std::uint32_t> places_of(const Cluster& cluster, std::uint32_t largest) {
  const auto& switches = cluster.network ? cluster.network->switches : std::nullopt;
  if (switches && (largest == 0 || switches->nodes < largest)) largest = switches->nodes;
  std::vector<std::uint32_t> places;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node)
    places.push_back(cluster.placement.empty() ? node : cluster.placement.at(node));
  std::vector<std::uint32_t> sorted = places;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    throw UserError(fmt::format("placement: node {} is listed twice", *twice), Fault::rule);
  if (largest > 0 && sorted.back() >= largest)
    throw UserError(
        fmt::format("{}: {} has places for {} nodes, not {}",
                    cluster.placement.empty() ? "nodes" : "placement",
                    switches ? cluster.network->name : cluster.name, largest, sorted.back() + 1),
        Fault::rule);
  return places;
}

// Returns the cluster with its nodes counted and placed: as many as were asked for, and not more
// than there are.
Cluster counted(const ClusterChoice& choice, const Parts& parts, bool is_platform) {
  Cluster cluster;
  cluster.name = is_platform ? choice.platform : choice.name;
  if (!choice.placement.empty())
    cluster.placement = parse_numbers("placement", "nodes", choice.placement);
  const auto placed = static_cast<std::uint32_t>(cluster.placement.size());
  cluster.nodes = choice.nodes.value_or(placed > 0 ? placed : is_platform ? parts.largest : 1);
  if (placed > 0 && placed != cluster.nodes)
    throw UserError(fmt::format("placement: expected {} nodes, found {}", cluster.nodes, placed),
                    Fault::rule);
  if (cluster.nodes == 0) throw UserError("nodes: expected at least one node, found 0");
  if (parts.largest > 0 && cluster.nodes > parts.largest)
    throw UserError(
        fmt::format("nodes: {} has {} nodes, not {}", cluster.name, parts.largest, cluster.nodes),
        Fault::rule);
  return cluster;
}

// Adds the network that joins the nodes, where there is more than one or somebody named it.
void join_nodes(const Catalogue& data, const ClusterChoice& choice, const Parts& parts,
                const MaybeDraw& draw, std::span<const GivenConstant> given, Cluster& cluster) {
  std::string network = choice.network.empty() ? parts.network : choice.network;
  if (network.empty()) network = cluster.node.network;
  if (cluster.nodes < 2 && choice.network.empty()) return;
  if (network.empty())
    throw UserError(fmt::format("{} has no usual network: name one, for example --network {}",
                                parts.node, one_of(names_on(data, network_shelf))),
                    Fault::rule);
  Document document = open_entry(data, network_shelf, network);
  prepare(document, draw, given, "network");
  const std::uint32_t nics = std::max(1u, cluster.node.count(PartKind::nic));
  cluster.network = read_network(document.root(), nics);
  document.finish();
  collect(cluster.constants, document, "network");
}

}  // namespace

std::vector<std::string> Catalogue::places(std::string_view path) const {
  std::vector<std::string> places;
  for (const std::string& folder : folders())
    if (std::string place = fmt::format("{}/{}", folder, path); is_there(place))
      places.push_back(std::move(place));
  return places;
}

std::string Catalogue::file(std::string_view path) const {
  const std::vector<std::string> all = places(path);
  if (!all.empty()) return all.back();
  return fmt::format("{}/{}", folders().empty() ? "" : folders().front(), path);
}

bool Catalogue::is_overlay(std::string_view file) const {
  // The installed folder may be named once more, to go before the user's own.
  return std::ranges::any_of(folders() | std::views::drop(1), [&](const std::string& folder) {
    return folder != folders().front() && file.starts_with(folder + "/");
  });
}

std::vector<std::string> overlay_files(const Catalogue& data, const Shelf& shelf,
                                       std::string_view name) {
  const Folders all = data.folders();
  std::vector<std::string> files;
  Folders folders = all;
  std::string link(name);
  for (int links = 0; all.size() > 1 && !link.empty() && links <= longest_chain; ++links) {
    const EntryPlace place = place_of_entry(folders, shelf, link);
    if (data.is_overlay(place.file)) files.push_back(place.file);
    const std::string like = read_document(place.file).root().text_or("like", "");
    if (is_common_file(like)) {
      if (const std::string file = common_file(all, like); data.is_overlay(file))
        files.push_back(file);
      break;
    }
    folders = like == link ? place.below : all;
    link = like;
  }
  return files;
}

std::vector<std::string> overlay_files(const Catalogue& data, const Cluster& cluster) {
  std::vector<std::string> files;
  const auto add = [&](const Shelf& shelf, const std::string& name) {
    for (std::string& file : overlay_files(data, shelf, name)) files.push_back(std::move(file));
  };
  if (is_on(data, cluster_shelf, cluster.name)) add(cluster_shelf, cluster.name);
  add(node_shelf, cluster.node.name);
  add(gpu_shelf, cluster.node.gpu);
  if (!cluster.node.processors.empty()) add(processor_shelf, cluster.node.processors.front());
  if (cluster.network) add(network_shelf, cluster.network->name);
  return files;
}

std::string overlay_note(std::span<const std::string> files) {
  return fmt::format("not of the installed catalogue: {}", fmt::join(files, ", "));
}

std::vector<std::string> names_on(const Catalogue& data, const Shelf& shelf) {
  return names_in(data.folders(), shelf);
}

bool is_on(const Catalogue& data, const Shelf& shelf, std::string_view name) {
  return has_entry(data.folders(), shelf, name);
}

std::string file_of(const Catalogue& data, const Shelf& shelf, std::string_view name) {
  return data.file(fmt::format("{}/{}.yaml", shelf.folder, name));
}

Document open_entry(const Catalogue& data, const Shelf& shelf, std::string_view name) {
  if (shelf.folder == node_shelf.folder) return open_node(data, name, "");
  const Folders folders = data.folders();
  return open_chain(folders, folders, shelf, name, 0);
}

Cluster load_cluster(const Catalogue& data, const ClusterChoice& choice, const MaybeDraw& draw,
                     std::span<const GivenConstant> given) {
  std::optional<PlatformMachine> machine;
  if (!choice.platform.empty()) machine = machine_of(data, choice.platform, choice.name);
  const auto hosts = machine ? static_cast<std::uint32_t>(machine->file.hosts.size()) : 0;
  const Parts parts = machine ? Parts{machine->node, "", "", hosts} : parts_of(data, choice.name);
  Cluster cluster = counted(choice, parts, machine.has_value());
  Document node =
      open_node(data, parts.node, choice.processor.empty() ? parts.processor : choice.processor);
  prepare(node, draw, given, "node");
  cluster.node = read_node(node.root());
  node.finish();
  if (choice.cores) cluster.node.host.cores = static_cast<int>(*choice.cores);
  const std::uint32_t present = cluster.node.count(PartKind::gpu);
  cluster.gpus_used = choice.gpus.value_or(machine && machine->of_gpus ? 1 : present);
  if (cluster.gpus_used == 0 || cluster.gpus_used > present)
    throw UserError(fmt::format("gpus: {} has {} of them per node, not {}", parts.node, present,
                                cluster.gpus_used));
  Document gpu = open_entry(data, gpu_shelf, cluster.node.gpu);
  prepare(gpu, draw, given, "gpu");
  cluster.gpu = read_gpu(gpu.root());
  gpu.finish();
  cluster.graph = lay_out(data, cluster.node);
  collect(cluster.constants, gpu, "gpu");
  collect(cluster.constants, node, "node");

  join_nodes(data, choice, parts, draw, given, cluster);
  if (machine && cluster.network) {
    cluster.network->title = fmt::format("costs of its library, cables of {}", choice.platform);
    cluster.network->switches.reset();
  }
  const std::vector<std::uint32_t> places = places_of(cluster, parts.largest);
  if (cluster.nodes > 1 && machine)
    cluster.routes = ways_of(*machine, places);
  else if (cluster.nodes > 1 && cluster.network->switches)
    cluster.routes = ways_through(*cluster.network->switches, places,
                                  std::max(1u, cluster.node.count(PartKind::nic)));
  return cluster;
}

}  // namespace stepsim
