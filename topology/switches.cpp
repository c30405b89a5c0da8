#include "topology/switches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/number_list.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_nodes_of_network = 1 << 16, most_switches = 1 << 16;
constexpr std::size_t most_lines = std::size_t{1} << 21;

// A bunch is the cables between two switches, which are all alike.
struct Bunch {
  std::uint32_t a = 0, b = 0, cables = 1;
  BytesPerSecond capacity{};
  Seconds latency{};
};

Seconds latency_in(const Table& table) {
  return table.has("latency") ? table.constant<Seconds>("latency").value : Seconds{};
}

std::uint32_t small_number(const Table& table, std::string_view key, std::int64_t low = 1) {
  return static_cast<std::uint32_t>(table.integer_or(key, 1, low, most_switches));
}

class SwitchDraft {
 public:
  SwitchDraft(std::uint32_t ports, BytesPerSecond port) : port_(port) { made_.ports = ports; }

  // Adds the tiers from the nodes up. A block of a tier holds `members` blocks of the one below, or
  // nodes.
  void add_tiers(const Table& root) {
    const std::vector<Table> tiers = root.tables("tiers");
    std::int64_t nodes = 1;
    for (const Table& tier : tiers)
      nodes = std::min(most_nodes_of_network + 1,
                       nodes * tier.integer("members", 1, most_nodes_of_network));
    if (tiers.empty()) root.problem("tiers", "expected at least one");
    if (nodes > most_nodes_of_network)
      root.problem("tiers", fmt::format("the members of all tiers together are more than {} nodes",
                                        most_nodes_of_network));
    if (!root.sound()) return;
    made_.nodes = static_cast<std::uint32_t>(nodes);
    made_.attached.assign(std::size_t{made_.nodes} * made_.ports, SwitchNetwork::nowhere);
    Blocks below = attach(tiers.front());
    for (std::size_t i = 1; i < tiers.size() && root.sound(); ++i) below = raise(tiers[i], below);
  }

  void add_switches(const Table& root) {
    const std::vector<Table> entries = root.tables("switches");
    std::vector<std::vector<std::uint32_t>> nodes, ports;
    for (const Table& entry : entries) {
      add_switch(entry, entry.text("name"));
      nodes.push_back(list_in(entry, "nodes"));
      ports.push_back(list_in(entry, "nics"));
      for (const std::uint32_t node : nodes.back()) made_.nodes = std::max(made_.nodes, node + 1);
    }
    if (made_.nodes > most_nodes_of_network)
      root.problem("switches", fmt::format("more than {} nodes", most_nodes_of_network));
    if (!root.sound()) return;
    made_.attached.assign(std::size_t{made_.nodes} * made_.ports, SwitchNetwork::nowhere);
    for (std::size_t i = 0; i < entries.size(); ++i)
      for (const std::uint32_t node : nodes[i])
        for (std::uint32_t port = 0; port < made_.ports; ++port) {
          if (!ports[i].empty() && std::ranges::find(ports[i], port) == ports[i].end()) continue;
          std::uint32_t& place = made_.attached[node * made_.ports + port];
          if (place != SwitchNetwork::nowhere)
            entries[i].problem("nodes", fmt::format("port {} of node {} is at {} already", port,
                                                    node, made_.switches[place]));
          place = static_cast<std::uint32_t>(i);
        }
  }

  // What a cable says goes before what the tiers say of those between the same two.
  void add_cables(const Table& root) {
    for (const Table& entry : root.tables("cables")) {
      entry.text_or("name", "");  // for the names of constants and for --set
      const std::vector<std::string> between = entry.texts("between");
      const bool counted = entry.has("cables"), rated = entry.has("bandwidth");
      const std::uint32_t cables = small_number(entry, "cables", 0);
      const bool delayed = entry.has("latency");
      const Seconds latency = latency_in(entry);
      if (between.size() != 2) {
        entry.problem("between", "expected two switches, such as [leaf0, spine1]");
        continue;
      }
      const auto a = switch_called(entry, between[0]), b = switch_called(entry, between[1]);
      if (!a || !b) continue;
      if (a == b) entry.problem("between", "expected two different switches");
      const auto place = bunches_.find(std::minmax(*a, *b));
      Bunch bunch = place == bunches_.end() ? Bunch{} : place->second;
      bunch.a = *a;
      bunch.b = *b;
      if (counted || place == bunches_.end()) bunch.cables = cables;
      if (rated || (place == bunches_.end() && bunch.cables > 0))
        bunch.capacity = entry.constant<BytesPerSecond>("bandwidth").value;
      if (delayed) bunch.latency = latency;
      bunches_.insert_or_assign(std::minmax(*a, *b), bunch);
    }
  }

  SwitchNetwork take(const Table& root) && {
    std::size_t lines = 0;
    for (const auto& [ends, bunch] : bunches_) lines += 2 * std::size_t{bunch.cables};
    if (lines > most_lines)
      root.problem("cables", fmt::format("more than {} cables in all", most_lines / 2));
    else
      for (const auto& [ends, bunch] : bunches_) add_lines(bunch);
    return std::move(made_);
  }

 private:
  using Blocks = std::vector<std::vector<std::uint32_t>>;  // the switches of each, rail by rail

  std::uint32_t add_switch(const Table& where, std::string name) {
    const auto number = static_cast<std::uint32_t>(made_.switches.size());
    if (!numbers_.try_emplace(name, number).second)
      where.problem("name", fmt::format("there are two switches \"{}\"", name));
    made_.switches.push_back(std::move(name));
    from_below_.push_back(0);
    return number;
  }

  // Switch `k` of rail `r` has the number k * rails + r in its block.
  Blocks add_blocks(const Table& tier, std::size_t blocks, std::uint32_t switches) {
    if (made_.switches.size() + blocks * switches > static_cast<std::size_t>(most_switches)) {
      tier.problem("members", fmt::format("more than {} switches in all", most_switches));
      return {};
    }
    const std::string name = tier.text("name");
    Blocks made(blocks);
    for (std::size_t block = 0; block < blocks; ++block)
      for (std::uint32_t i = 0; i < switches; ++i)
        made[block].push_back(add_switch(tier, switches == 1
                                                   ? fmt::format("{}{}", name, block)
                                                   : fmt::format("{}{}.{}", name, block, i)));
    return made;
  }

  Blocks attach(const Table& tier) {
    const std::uint32_t rails = small_number(tier, "rails");
    const auto members = static_cast<std::uint32_t>(tier.integer("members", 1, 1 << 20));
    for (const std::string_view key : {"switches", "cables", "bandwidth", "oversubscription"})
      if (tier.has(key))
        tier.problem(key, "is not for the first tier: a port of a node is one cable to one switch");
    Blocks blocks = add_blocks(tier, made_.nodes / members, rails);
    for (std::uint32_t node = 0; node < made_.nodes && !blocks.empty(); ++node)
      for (std::uint32_t port = 0; port < made_.ports; ++port) {
        const std::uint32_t place = blocks[node / members][port % rails];
        made_.attached[node * made_.ports + port] = place;
        from_below_[place] += port_.value;
      }
    return blocks;
  }

  Blocks raise(const Table& tier, const Blocks& below) {
    const std::uint32_t rails = small_number(tier, "rails");
    const std::uint32_t switches = small_number(tier, "switches");
    const std::uint32_t cables = small_number(tier, "cables");
    const auto members = static_cast<std::size_t>(tier.integer("members", 1, 1 << 20));
    std::optional<BytesPerSecond> bandwidth;
    double oversubscription = 0;
    if (tier.has("oversubscription") == tier.has("bandwidth"))
      tier.problem("bandwidth", "expected either bandwidth or oversubscription");
    else if (tier.has("bandwidth"))
      bandwidth = tier.constant<BytesPerSecond>("bandwidth").value;
    else
      oversubscription = tier.constant<Ratio>("oversubscription").number();
    const Seconds latency = latency_in(tier);
    Blocks blocks = add_blocks(tier, below.size() / members, rails * switches);
    for (std::size_t block = 0; block < below.size() && !blocks.empty(); ++block)
      for (std::uint32_t i = 0; i < below[block].size(); ++i)
        for (std::uint32_t k = 0; k < switches; ++k) {
          const std::uint32_t low = below[block][i];
          const std::uint32_t high = blocks[block / members][k * rails + i % rails];
          const BytesPerSecond each = bandwidth.value_or(BytesPerSecond{
              from_below_[low] / oversubscription / (double{1} * switches * cables)});
          bunches_.try_emplace(std::minmax(low, high), Bunch{low, high, cables, each, latency});
          from_below_[high] += each.value * cables;
        }
    return blocks;
  }

  static std::vector<std::uint32_t> list_in(const Table& table, std::string_view key) {
    if (!table.has(key)) return {};
    try {
      return parse_numbers(key, key, table.text(key));
    } catch (const UserError& error) {
      table.problem(key, std::string_view(error.what()).substr(key.size() + 2));
      return {};
    }
  }

  std::optional<std::uint32_t> switch_called(const Table& entry, const std::string& name) const {
    if (const auto place = numbers_.find(name); place != numbers_.end()) return place->second;
    entry.problem("between",
                  fmt::format("no switch \"{}\"{}", name, did_you_mean(name, made_.switches)));
    return std::nullopt;
  }

  void add_lines(const Bunch& bunch) {
    const std::string &a = made_.switches[bunch.a], &b = made_.switches[bunch.b];
    for (std::uint32_t cable = 0; cable < bunch.cables; ++cable) {
      const std::string which = bunch.cables == 1 ? "" : fmt::format("/{}", cable);
      for (const bool back : {false, true})
        made_.lines.push_back({.name = fmt::format("{}>{}{}", back ? b : a, back ? a : b, which),
                               .from = back ? bunch.b : bunch.a,
                               .to = back ? bunch.a : bunch.b,
                               .capacity = bunch.capacity,
                               .latency = bunch.latency});
    }
  }

  BytesPerSecond port_;
  SwitchNetwork made_;
  std::map<std::string, std::uint32_t> numbers_;  // of switches by their names
  std::vector<double> from_below_;                // B/s into each switch
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bunch> bunches_;
};

}  // namespace

SwitchNetwork read_switches(const Table& table, std::uint32_t ports, BytesPerSecond port) {
  SwitchDraft draft(ports, port);
  if (table.has("tiers") && table.has("switches"))
    table.problem("switches", "expected either tiers or switches");
  else if (table.has("tiers"))
    draft.add_tiers(table);
  else
    draft.add_switches(table);
  if (table.has("cables") && table.sound()) draft.add_cables(table);
  return std::move(draft).take(table);
}

}  // namespace stepsim
