// This is the only user of Boost.Graph.
#include "topology/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/visitors.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "topology/catalog.hpp"

namespace stepsim {
namespace {

struct Cable {
  std::vector<std::uint32_t> links;  // its own, and what it shares with the other direction
};
using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Cable>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;
using Edge = boost::graph_traits<Graph>::edge_descriptor;

// Leaves out edges that start at a part which neither forwards nor is the sender.
struct Passable {
  const Graph* graph = nullptr;
  const std::vector<PartKind>* kinds = nullptr;
  Vertex sender = 0;
  bool operator()(const Edge& edge) const {
    const Vertex from = boost::source(edge, *graph);
    return from == sender || forwards((*kinds)[from]);
  }
};

// Keeps the edge by which the search first came to each part.
struct Recorder : boost::default_bfs_visitor {
  std::vector<Edge>* came_by = nullptr;
  std::vector<std::uint8_t>* reached = nullptr;
  void tree_edge(const Edge& edge, const auto& over) const {
    (*came_by)[boost::target(edge, over)] = edge;
    (*reached)[boost::target(edge, over)] = 1;
  }
};

struct Draft {
  const Node& node;
  NodeGraph result;
  Graph graph;
  std::vector<PartKind> kinds;  // of each part

  std::uint32_t add_link(std::string name, BytesPerSecond capacity) {
    result.links.push_back({std::move(name), capacity});
    return static_cast<std::uint32_t>(result.links.size() - 1);
  }

  std::string part_text(std::uint32_t part) const {
    const PartKind kind = kinds[part];
    return fmt::format("{}{}", to_text(kind), part - result.part(kind, 0));
  }

  void join(const LinkSpec& spec, std::uint32_t a, std::uint32_t b) {
    const std::string there = fmt::format("{}>{}", part_text(a), part_text(b));
    const std::string back = fmt::format("{}>{}", part_text(b), part_text(a));
    Cable forward{{add_link(spec.name + "." + there, spec.bandwidth.value)}};
    Cable reverse{{add_link(spec.name + "." + back, spec.reverse.value_or(spec.bandwidth).value)}};
    if (spec.total) {
      const std::uint32_t shared = add_link(
          fmt::format("{}.{}={}", spec.name, part_text(a), part_text(b)), spec.total->value);
      forward.links.push_back(shared);
      reverse.links.push_back(shared);
    }
    boost::add_edge(a, b, forward, graph);
    boost::add_edge(b, a, reverse, graph);
  }

  void wire(const LinkSpec& spec) {
    const std::uint32_t from = node.count(spec.from), to = node.count(spec.to);
    if (spec.wiring == Wiring::mesh) {
      for (std::uint32_t i = 0; i < from; ++i)
        for (std::uint32_t j = i + 1; j < from; ++j)
          join(spec, result.part(spec.from, i), result.part(spec.from, j));
      return;
    }
    const std::uint32_t large = std::max(from, to);
    for (std::uint32_t i = 0; i < large; ++i)
      join(spec, result.part(spec.from, i * from / large), result.part(spec.to, i * to / large));
  }

  // Adds two links that carry what one GPU can move through its fabric at most. Compute on the same
  // GPU slows these two, and with them the collectives that it takes part in.
  void add_engines(std::uint32_t gpu) {
    double out = 0, any = 0;
    const auto [begin, end] = boost::out_edges(gpu, graph);
    for (auto at = begin; at != end; ++at) {
      const Edge edge = *at;
      const double capacity = result.links[graph[edge].links.front()].capacity.value;
      const PartKind peer = kinds[boost::target(edge, graph)];
      any += capacity;
      if (peer == PartKind::gpu || peer == PartKind::nvswitch) out += capacity;
    }
    const BytesPerSecond rate{out > 0 ? out : any > 0 ? any : 1};
    result.engine_out.push_back(add_link(fmt::format("engine.{}.out", part_text(gpu)), rate));
    result.engine_in.push_back(add_link(fmt::format("engine.{}.in", part_text(gpu)), rate));
  }

  // Searches breadth first: it finds the fewest hops, and among equals the cable that the file
  // names first.
  void find_routes(Vertex from) {
    std::vector<Edge> came_by(kinds.size());
    std::vector<std::uint8_t> reached(kinds.size(), 0);
    Recorder recorder;
    recorder.came_by = &came_by;
    recorder.reached = &reached;
    const boost::filtered_graph passable(graph, Passable{&graph, &kinds, from});
    std::vector<boost::default_color_type> colors(kinds.size());
    boost::breadth_first_search(
        passable, from,
        boost::visitor(recorder).color_map(boost::make_iterator_property_map(
            colors.begin(), boost::get(boost::vertex_index, graph))));
    for (Vertex to = 0; to < kinds.size(); ++to) {
      if (to == from || reached[to] == 0) continue;
      std::vector<std::uint32_t>& route = result.routes[from][to];
      for (Vertex at = to; at != from; at = boost::source(came_by[at], graph)) {
        const auto& links = graph[came_by[at]].links;
        route.insert(route.end(), links.rbegin(), links.rend());
      }
      std::reverse(route.begin(), route.end());
    }
  }
};

// The links of a node as far as its graph holds them.
struct Wires {
  std::array<std::uint32_t, part_names.size()> parts{};
  using Wire = std::tuple<std::string, PartKind, PartKind, Wiring, double, double, double>;
  std::vector<Wire> wires;

  explicit Wires(const Node& node) : parts(node.parts) {
    constexpr double none = 0;  // a rate is above it
    const auto value = [](const auto& rate) { return rate ? rate->number() : none; };
    for (const LinkSpec& each : node.links)
      wires.emplace_back(each.name, each.from, each.to, each.wiring, each.bandwidth.number(),
                         value(each.reverse), value(each.total));
  }
  bool operator==(const Wires&) const = default;
};

NodeGraph graph_of(const Node& node) {
  Draft draft{node, {}, {}, {}};
  for (std::size_t kind = 0; kind < part_names.size(); ++kind) {
    draft.result.first_part.push_back(static_cast<std::uint32_t>(draft.kinds.size()));
    draft.kinds.insert(draft.kinds.end(), node.parts[kind], static_cast<PartKind>(kind));
  }
  for (std::size_t part = 0; part < draft.kinds.size(); ++part) boost::add_vertex(draft.graph);
  for (const LinkSpec& spec : node.links) draft.wire(spec);
  for (std::uint32_t gpu = 0; gpu < node.count(PartKind::gpu); ++gpu)
    draft.add_engines(draft.result.part(PartKind::gpu, gpu));
  draft.result.routes.assign(draft.kinds.size(),
                             std::vector<std::vector<std::uint32_t>>(draft.kinds.size()));
  for (Vertex from = 0; from < draft.kinds.size(); ++from) draft.find_routes(from);
  return std::move(draft.result);
}

// Nearly all scenarios of a study are on nodes of one kind, and routes take longer than the rest of
// a cluster.
struct LastGraph {
  std::optional<Wires> wires;
  NodeGraph graph;
};

}  // namespace

NodeGraph lay_out(const Catalogue& data, const Node& node) {
  LastGraph& last = data.kept<LastGraph>();
  Wires wires(node);
  if (last.wires != wires) last = {std::move(wires), graph_of(node)};
  return last.graph;
}

// The search runs from the goal against the direction of the lines.
std::vector<std::vector<std::uint32_t>> distances_to(std::span<const SwitchNetwork::Line> lines,
                                                     std::size_t switches,
                                                     std::span<const std::uint32_t> goals) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> backwards(switches);
  for (const SwitchNetwork::Line& line : lines) boost::add_edge(line.to, line.from, backwards);
  std::vector<std::vector<std::uint32_t>> distances;
  for (const std::uint32_t goal : goals) {
    std::vector<std::uint32_t>& far = distances.emplace_back(switches, SwitchNetwork::nowhere);
    far[goal] = 0;
    boost::breadth_first_search(backwards, goal,
                                boost::visitor(boost::make_bfs_visitor(
                                    boost::record_distances(far.data(), boost::on_tree_edge()))));
  }
  return distances;
}

}  // namespace stepsim
