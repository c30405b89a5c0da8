#include "topology/network_routes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_ways = 30'000'000;

class WayFinder {
 public:
  WayFinder(const SwitchNetwork& network, std::span<const std::uint32_t> places, std::uint32_t nics)
      : network_(network), places_(places), nics_(nics), leaving_(network.switches.size()) {
    for (std::uint32_t line = 0; line < network.lines.size(); ++line)
      leaving_[network.lines[line].from].push_back(line);
    number_ports();
  }

  NetworkRoutes find() {
    std::vector<std::uint32_t> row_at(network_.switches.size(), SwitchNetwork::nowhere), goals;
    made_.ends_of_node = nics_;
    for (const std::uint32_t place : places_)
      for (std::uint32_t nic = 0; nic < nics_; ++nic) {
        const std::uint32_t at = switch_of(place, nic);
        if (at == SwitchNetwork::nowhere)
          throw UserError(
              fmt::format("port {} of node {} is at no switch", nic % network_.ports, place),
              Fault::rule);
        if (row_at[at] == SwitchNetwork::nowhere) {
          row_at[at] = static_cast<std::uint32_t>(goals.size());
          goals.push_back(at);
          made_.starts.push_back(network_.switches[at]);
        }
        made_.row_of.push_back(row_at[at]);
      }
    if (goals.size() * made_.ends() > most_ways)
      throw UserError("nodes: there are too many of them for a network with tiers or switches");
    const auto distances = distances_to(network_.lines, network_.switches.size(), goals);
    numbers_.assign(network_.lines.size(), NetworkRoutes::no_way);
    for (const std::uint32_t start : goals)
      for (std::uint32_t end = 0; end < made_.ends(); ++end)
        add_way(start, end, distances[made_.row_of[end]]);
    made_.first.push_back(static_cast<std::uint32_t>(made_.crossed.size()));
    return std::move(made_);
  }

 private:
  // Numbers the ports of each switch in the order of the nodes.
  void number_ports() {
    std::vector<std::uint32_t> so_far(network_.switches.size(), 0);
    for (const std::uint32_t at : network_.attached)
      turns_.push_back(at == SwitchNetwork::nowhere ? 0 : so_far[at]++);
  }

  std::size_t port_of(std::uint32_t place, std::uint32_t nic) const {
    return std::size_t{place} * network_.ports + nic % network_.ports;
  }
  std::uint32_t switch_of(std::uint32_t place, std::uint32_t nic) const {
    return network_.attached[port_of(place, nic)];
  }

  void add_way(std::uint32_t start, std::uint32_t end, const std::vector<std::uint32_t>& distance) {
    made_.first.push_back(static_cast<std::uint32_t>(made_.crossed.size()));
    const std::uint32_t place = places_[end / nics_];
    std::uint32_t turn = turns_[port_of(place, end % nics_)];
    const std::uint32_t goal = switch_of(place, end % nics_);
    if (distance[start] == SwitchNetwork::nowhere)
      return made_.crossed.push_back(NetworkRoutes::no_way);
    Seconds latency;
    for (std::uint32_t at = start; at != goal;) {
      nearer_.clear();
      for (const std::uint32_t line : leaving_[at])
        if (distance[network_.lines[line].to] + 1 == distance[at]) nearer_.push_back(line);
      const auto choices = static_cast<std::uint32_t>(nearer_.size());
      const std::uint32_t line = nearer_[turn % choices];
      turn /= choices;
      made_.crossed.push_back(number_of(line));
      latency += network_.lines[line].latency;
      at = network_.lines[line].to;
    }
    made_.latency = std::max(made_.latency, latency);
  }

  std::uint32_t number_of(std::uint32_t line) {
    if (numbers_[line] == NetworkRoutes::no_way) {
      numbers_[line] = static_cast<std::uint32_t>(made_.lines.size());
      made_.lines.push_back({network_.lines[line].name, network_.lines[line].capacity});
    }
    return numbers_[line];
  }

  const SwitchNetwork& network_;
  std::span<const std::uint32_t> places_;
  std::uint32_t nics_;
  std::vector<std::vector<std::uint32_t>> leaving_;  // [switch]: lines
  std::vector<std::uint32_t> turns_;                 // [port]
  std::vector<std::uint32_t> numbers_;               // [line]
  std::vector<std::uint32_t> nearer_;
  NetworkRoutes made_;
};

}  // namespace

std::optional<std::span<const std::uint32_t>> NetworkRoutes::way(std::uint32_t from,
                                                                 std::uint32_t to) const {
  const std::size_t place = std::size_t{row_of[from]} * ends() + to;
  const std::span way = std::span(crossed).subspan(first[place], first[place + 1] - first[place]);
  if (!way.empty() && way.front() == no_way) return std::nullopt;
  return way;
}

NetworkRoutes ways_through(const SwitchNetwork& network, std::span<const std::uint32_t> places,
                           std::uint32_t nics) {
  return WayFinder(network, places, nics).find();
}

}  // namespace stepsim
