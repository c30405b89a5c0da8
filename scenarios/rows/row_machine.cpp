// This finds the machine and the software of a row, by the words that the files of the catalogue
// list.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenarios/rows/machine_cells.hpp"
#include "scenarios/rows/row_parts.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr double gigabit = 1e9 / 8;   // bytes
constexpr double same_rate = 0.05;    // "400" and what 8 ports of 50 GB/s carry
constexpr double largest_port = 400;  // Gb/s: more than that is what a node has

// Ports are sold in these rates and reach a little less.
double sold_as(double port) {
  for (const double rate : {25.0, 50.0, 100.0, 200.0, 400.0, 800.0})
    if (port <= rate * gigabit) return rate;
  return port / gigabit;
}

std::size_t place_of(const std::vector<MachineWords::Entry>& entries, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::find_if(entries, [&](const auto& e) { return e.first == name; }) -
      entries.begin());
}

// A network's name may have its generation behind it: "NDR400", "RoCEv2".
bool same_word(const std::string& text, const std::string& word) {
  if (!text.starts_with(word)) return false;
  std::string_view rest = std::string_view(text).substr(word.size());
  if (rest.starts_with('v')) rest.remove_prefix(1);
  return std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; });
}

bool says_rate(const std::string& word) {
  constexpr std::array<std::string_view, 5> units{"gb", "gbps", "s", "per", "node"};
  return (word.front() >= '0' && word.front() <= '9') || holds(units, word);
}

bool stand_in(const std::vector<std::string>& text, const std::vector<std::string>& words) {
  return !words.empty() &&
         std::search(text.begin(), text.end(), words.begin(), words.end(), same_word) != text.end();
}

// This says how a network is named in a cell: by what it is, or only by its rate.
enum class Named : std::uint8_t { not_at_all, by_rate, by_kind };

Named named(const MachineWords::Entry& network, const std::vector<std::string>& text) {
  Named best = Named::not_at_all;
  for (const std::string& entry : network.second) {
    const std::vector<std::string> words = machine_words_in(entry);
    std::vector<std::string> kind;
    for (const std::string& word : words)
      if (!says_rate(word)) kind.push_back(word);
    if (stand_in(text, kind) || (!kind.empty() && stand_in(text, words))) return Named::by_kind;
    if (stand_in(text, words)) best = Named::by_rate;
  }
  return best;
}

struct NodePlace {
  const RowCatalog::NodeSize& node;
  const NodeFacts& facts;
  const MachineWords& machines;

  // Returns the Gb/s of all ports of the node on that network.
  double total(std::size_t network) const {
    return facts.ports * sold_as(machines.of_network[network].port);
  }
};

// The choice is one of the networks that are named alike: for GPUs of that vendor, and as fast as
// it is said.
struct NetworkChoice {
  std::size_t network = 0;
  bool only = true;
};
NetworkChoice network_of(const NodePlace& place, const std::vector<std::string>& text,
                         double rate) {
  std::size_t best = place.machines.networks.size();
  bool only = true;
  Named how = Named::not_at_all;
  std::pair<bool, double> distance;
  for (std::size_t i = 0; i < place.machines.networks.size(); ++i) {
    const Named now = named(place.machines.networks[i], text);
    if (now == Named::not_at_all || now < how) continue;
    const std::pair<bool, double> off{place.machines.of_network[i].library != place.facts.library,
                                      std::abs(std::log(place.total(i) / rate))};
    only = now > how;
    if (!only && off >= distance) continue;
    best = i;
    how = now;
    distance = off;
  }
  return {best, only};
}

// Gb/s of a node, as the cell has it; 0: it has none.
double rate_of_node(const StepRow& row, const NodePlace& place, RowScenario& made) {
  const auto stated = stated_rate(row.interconnect);
  if (!stated) return 0;
  if (stated->other > 0)
    made.assume(fmt::format("{:g} Gb/s, not {:g}", stated->gigabits, stated->other));
  if (stated->of == StatedRate::Of::node) return stated->gigabits;
  if (stated->of == StatedRate::Of::gpu) return stated->gigabits * place.node.gpus;
  const std::vector<std::string> words = machine_words_in(row.interconnect);
  const bool efa = holds(words, "efa");
  const bool whole = efa || stated->gigabits > largest_port;
  made.assume(fmt::format("{:g} Gb/s for {}", stated->gigabits, whole ? "each node" : "each GPU"));
  return whole ? stated->gigabits : stated->gigabits * place.node.gpus;
}

void write_network(const StepRow& row, const RowCatalog& catalog, const RowCatalog::NodeSize& node,
                   RowScenario& made) {
  const MachineWords& machines = catalog.machines;
  const NodePlace place{node, machines.of_node[place_of(machines.nodes, node.name)], machines};
  const std::size_t usual = place_of(machines.networks, place.facts.network);
  if (usual >= machines.networks.size()) {
    made.lack(fmt::format("the network \"{}\"", row.interconnect));
    return;
  }
  const double stated = rate_of_node(row, place, made);
  const double wanted = stated > 0 ? stated : place.total(usual);
  const auto [found, only] =
      network_of(place, machine_words_in(row.interconnect + "; " + row.hardware), wanted);
  const bool is_named = found < machines.networks.size();
  const std::size_t network = is_named ? found : usual;
  const std::string& name = machines.networks[network].first;
  if (is_named)
    made.set("cluster.network", name);
  else
    made.assume("the usual network of the node");
  const double share = wanted / place.total(network);
  const bool as_usual = std::abs(share - 1) <= same_rate;
  if (!as_usual || (is_named && !only && stated <= 0 && network != usual))
    made.assume(fmt::format("{} at {:g} Gb/s in each node", name, wanted));
  if (as_usual) return;
  const NetworkFacts& facts = machines.of_network[network];
  const auto slowed = [&](const std::string& constant, double rate, int digits) {
    made.document.set(std::vector<std::string>{"constants", constant},
                      fmt::format("{:.{}g} GB/s", rate * share / 1e9, digits));
  };
  slowed("network.port.bandwidth", facts.port, 4);
  if (facts.uplink > 0) slowed("network.leaf.uplink", facts.uplink, 5);
}

}  // namespace

void write_cluster(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const NamedNode named = named_node(catalog, {row.hardware, row.interconnect, row.gpu_memory});
  const RowCatalog::NodeSize* node = named.node;
  if (node == nullptr) {
    made.lack(named.why);
    return;
  }
  made.gpu = node->gpu;
  double gpus = row.gpus.value_or(0), nodes = row.nodes.value_or(0);
  if (gpus < 1 && nodes < 1) {
    made.lack("the number of GPUs");
    return;
  }
  const double said = gpus_in_a_node(row.interconnect + "; " + row.hardware);
  const double full = said > 0 ? said : node->gpus;
  if (gpus < 1) {
    gpus = nodes * full;
    if (said <= 0) made.assume(fmt::format("{} GPUs in a node", node->gpus));
  }
  if (nodes < 1 && gpus > full && said <= 0 && in_slots(catalog, node->name)) {
    made.lack(fmt::format("how many nodes have the {:g} GPUs \"{}\"", gpus, row.hardware));
    return;
  }
  if (nodes < 1) {
    nodes = std::ceil(gpus / full);
    if (nodes > 1 && said <= 0)
      made.assume(fmt::format("{:g} nodes of {:g} GPUs", nodes, gpus / nodes));
  }
  const double each = gpus / nodes;
  if (each != std::floor(each) || each > node->gpus) {
    made.lack(fmt::format("a node of {:g} GPUs \"{}\"", each, row.hardware));
    return;
  }
  made.set("cluster.node", node->name);
  made.set("cluster.nodes", nodes);
  if (each < node->gpus) made.set("cluster.gpus_per_node", each);
  if (const std::string name = best_name(catalog.machines.processors, row.hardware); !name.empty())
    made.set("cluster.processor", name);
  if (nodes > 1) write_network(row, catalog, *node, made);
}

void write_stack(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  // Launches cost something else on other GPUs: a stack may be for those of one vendor.
  std::vector<MachineWords::Entry> stacks;
  const std::string vendor = known_of(catalog.vendors, made.gpu);
  for (const MachineWords::Entry& entry : catalog.stacks)
    if (const std::string meant = known_of(catalog.vendors, entry.first);
        meant.empty() || vendor.empty() || meant == vendor)
      stacks.push_back(entry);
  made.stack = first_name(stacks, row.framework);
  if (made.stack.empty())
    made.lack(row.framework.empty() ? "the framework"
                                    : fmt::format("the framework \"{}\"", row.framework));
  else
    made.set("stack", made.stack);
}

}  // namespace stepsim
