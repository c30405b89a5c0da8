#include "topology/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace stepsim {
namespace {

// Constants keep the place they came from in their name: "node.links.xgmi.bandwidth".
void collect(std::vector<NamedConstant>& all, const Document& document, std::string_view prefix) {
  for (NamedConstant constant : document.constants()) {
    constant.name = fmt::format("{}.{}", prefix, constant.name);
    all.push_back(std::move(constant));
  }
}

struct Parts {
  std::string node;
  std::string network;
  std::uint32_t largest = 0;  // 0: no limit is known
};

// A name is a cluster, which says its node and network, or a node alone.
Parts parts_of(const std::string& data, const std::string& name) {
  const std::vector<std::string> clusters = names_on(data, cluster_shelf);
  if (std::find(clusters.begin(), clusters.end(), name) != clusters.end()) {
    const Document document = open_entry(data, cluster_shelf, name);
    const Table root = document.root();
    root.text("name");
    root.text("title");
    root.text_or("note", "");
    Parts parts{root.text("node"), root.text("network"),
                static_cast<std::uint32_t>(root.integer("nodes", 1, 1 << 20))};
    document.finish();
    return parts;
  }
  std::vector<std::string> all = names_on(data, node_shelf);
  if (std::find(all.begin(), all.end(), name) != all.end()) return {name, "", 0};
  all.insert(all.end(), clusters.begin(), clusters.end());
  throw UserError(fmt::format(
      "no cluster or node \"{}\"{}; `stepsim list nodes` and `stepsim list clusters` name them",
      name, did_you_mean(name, all)));
}

// Before a document is read: which of its constants are not as it says.
void prepare(Document& document, const MaybeDraw& draw, std::span<const GivenConstant> given,
             std::string_view scope) {
  if (draw) document.draw_constants(*draw, scope);
  document.give_constants(given, scope);
}

// An entry that is like one that is like another: more links than this are a circle.
constexpr int longest_chain = 4;

Document open_chain(const std::string& data, const Shelf& shelf, std::string_view name, int links) {
  const std::vector<std::string> names = names_on(data, shelf);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("no {} \"{}\"{}", shelf.singular, name, did_you_mean(name, names)));
  Document document = read_document(file_of(data, shelf, name));
  const Table root = document.root();
  if (const std::string own = root.text_or("name", name); own != name)
    root.problem("name",
                 fmt::format("expected \"{}\", as the file is called, found \"{}\"", name, own));
  const std::string like = root.text_or("like", "");
  if (like.empty()) return document;
  const auto reject = [&](std::string message) {
    throw UserError({{document.file(), 0, "like", std::move(message)}});
  };
  if (links == longest_chain) reject("entries that are like each other form a circle");
  if (std::find(names.begin(), names.end(), like) == names.end())
    reject(fmt::format("no {} \"{}\"{}", shelf.singular, like, did_you_mean(like, names)));
  document.inherit(open_chain(data, shelf, like, links + 1),
                   {"name", "title", "like", "note", "measured_as", "learners_named",
                    "selective_is", "must_say", "experts_recompute"},
                   {"defaults"});
  return document;
}

}  // namespace

std::vector<std::string> names_on(const std::string& data, const Shelf& shelf) {
  std::vector<std::string> names;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::path(data) / shelf.folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string file_of(const std::string& data, const Shelf& shelf, std::string_view name) {
  return fmt::format("{}/{}/{}.yaml", data, shelf.folder, name);
}

Document open_entry(const std::string& data, const Shelf& shelf, std::string_view name) {
  return open_chain(data, shelf, name, 0);
}

Cluster load_cluster(const std::string& data, const ClusterChoice& choice, const MaybeDraw& draw,
                     std::span<const GivenConstant> given) {
  const Parts parts = parts_of(data, choice.name);
  Cluster cluster;
  cluster.name = choice.name;
  cluster.nodes = choice.nodes.value_or(1);
  if (cluster.nodes == 0) throw UserError("nodes: expected at least one node, found 0");
  if (parts.largest > 0 && cluster.nodes > parts.largest)
    throw UserError(
        fmt::format("nodes: {} has {} nodes, not {}", choice.name, parts.largest, cluster.nodes),
        Fault::rule);
  Document node = open_entry(data, node_shelf, parts.node);
  prepare(node, draw, given, "node");
  cluster.node = read_node(node.root());
  node.finish();
  const std::uint32_t present = cluster.node.count(PartKind::gpu);
  cluster.gpus_used = choice.gpus.value_or(present);
  if (cluster.gpus_used == 0 || cluster.gpus_used > present)
    throw UserError(fmt::format("gpus: {} has {} of them per node, not {}", parts.node, present,
                                cluster.gpus_used));
  Document gpu = open_entry(data, gpu_shelf, cluster.node.gpu);
  prepare(gpu, draw, given, "gpu");
  cluster.gpu = read_gpu(gpu.root());
  gpu.finish();
  cluster.graph = lay_out(cluster.node);
  collect(cluster.constants, gpu, "gpu");
  collect(cluster.constants, node, "node");

  std::string network = choice.network.empty() ? parts.network : choice.network;
  if (network.empty()) network = cluster.node.network;
  if (cluster.nodes > 1 || !choice.network.empty()) {
    if (network.empty())
      throw UserError(fmt::format("{} has no usual network: name one, for example --network {}",
                                  parts.node, one_of(names_on(data, network_shelf))),
                      Fault::rule);
    Document document = open_entry(data, network_shelf, network);
    prepare(document, draw, given, "network");
    cluster.network = read_network(document.root());
    document.finish();
    collect(cluster.constants, document, "network");
  }
  return cluster;
}

}  // namespace stepsim
