#include "tests/support/any_program.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "tests/support/tiny_program.hpp"

namespace stepsim {
namespace {

constexpr Rank ranks = 8;
constexpr std::uint32_t links = 12;

// Returns changes from any moment on, for a while or for good, once or over and over.
std::vector<Change> any_changes(Dice& dice) {
  std::vector<Change> changes(dice.roll(3));
  for (Change& change : changes) {
    change.at = 1e-5 * dice.roll(50);
    if (dice.roll(2) == 0) change.length = 1e-5 * (1 + dice.roll(30));
    if (std::isfinite(change.length) && dice.roll(2) == 0)
      change.period = change.length * (1.5 + dice.roll(3));
    change.share = 0.1 * (1 + dice.roll(9));
  }
  return changes;
}

// Makes a pattern with some links twice, flows with a limit, rounds with and without latency, and
// groups of any size.
Pattern any_pattern(Dice& dice) {
  Pattern pattern{.name = "any", .occupancy = 0.5 * dice.roll(3)};
  const Rank first = dice.roll(ranks);
  for (Rank i = 0, size = 1 + dice.roll(4); i < size; ++i)
    pattern.members.push_back((first + i) % ranks);
  for (std::uint32_t round = 0, rounds = 1 + dice.roll(3); round < rounds; ++round) {
    pattern.rounds.push_back({.latency = {1e-6 * dice.roll(4)}});
    for (std::uint32_t i = 0, flows = dice.roll(5); i < flows; ++i) {
      const double share = 1.0 / (1 + dice.roll(3));
      Flow flow = flow_over({dice.roll(links), dice.roll(links), dice.roll(links)}, share);
      if (dice.roll(3) == 0) flow.rate_cap = 1e8 * (1 + dice.roll(8));
      pattern.rounds.back().flows.push_back(flow);
    }
  }
  return pattern;
}

}  // namespace

Platform uneven_platform(Dice& dice) {
  Platform platform = tiny_platform({}, ranks);
  for (std::uint32_t i = 0; i < links; ++i)
    platform.links.push_back({.name = "link", .capacity = {1e9 * (1 + dice.roll(4))}});
  for (Rank rank = 0; rank < ranks; ++rank) {
    Device& device = platform.devices[rank];
    device.speed = 1 - 0.1 * dice.roll(3);
    device.compute_share = 1 - 0.2 * dice.roll(3);
    device.collective_share = 1 - 0.2 * dice.roll(3);
    device.engines = {LinkId{rank}};
  }
  return platform;
}

void let_change(Platform& platform, Dice& dice) {
  for (Link& link : platform.links) {
    if (dice.roll(3) == 0) link.changes = any_changes(dice);
    for (Change& change : link.changes)
      if (dice.roll(4) == 0) change.latency = 1e-6 * dice.roll(5);
  }
  for (Device& device : platform.devices)
    if (dice.roll(3) == 0) device.changes = any_changes(dice);
}

OpGraph any_program(Dice& dice, std::uint32_t size) {
  OpGraph graph;
  for (int i = 0; i < 16; ++i) graph.pattern(any_pattern(dice));
  for (std::uint32_t i = 0; i < size; ++i) {
    const Rank rank = dice.roll(ranks);
    const double seconds = 1e-6 * dice.roll(100);  // equal ones among them, and none at all
    std::vector<OpId> after;
    for (int k = 0; k < 2 && i > 0; ++k) after.push_back(OpId{dice.roll(i)});
    switch (dice.roll(4)) {
      case 0:
        graph.add(host_op(rank, seconds), after);
        break;
      case 1:
        graph.add(traffic_op(PatternId{dice.roll(16)}, 1e4 * dice.roll(100)), after);
        break;
      default:
        graph.add(compute_op(rank, seconds), after);
    }
  }
  return graph;
}

void add_neighbours(OpGraph& graph, Dice& dice) {
  for (std::uint32_t i = 0, count = dice.roll(3); i < count; ++i) {
    Pattern pattern{.name = "neighbour", .rounds = {{}}, .occupancy = 0};
    pattern.rounds.front().flows.push_back(flow_over({dice.roll(links), dice.roll(links)}));
    graph.beside({.pattern = graph.pattern(pattern),
                  .bytes = {1e4 * dice.roll(50)},
                  .at = 1e-5 * dice.roll(50),
                  .period = 1e-4 * dice.roll(5)});
  }
}

OpGraph in_streams(const OpGraph& graph, Dice& dice) {
  OpGraph turned;
  for (const Pattern& pattern : graph.patterns()) turned.pattern(pattern);
  for (const Neighbour& neighbour : graph.neighbours()) turned.beside(neighbour);
  std::array<std::array<std::optional<OpId>, 2>, ranks> last{};
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    Op op = graph[OpId{i}];
    std::vector<OpId> after(graph.predecessors(OpId{i}).begin(), graph.predecessors(OpId{i}).end());
    if (op.kind == OpKind::collective && dice.roll(4) == 0) op.kind = OpKind::cpu;
    if (op.kind == OpKind::compute) {
      const std::uint32_t stream = dice.roll(2);
      op.stream = stream == 0 ? Stream::compute : Stream::gather;
      op.streaming = static_cast<std::uint8_t>(dice.roll(33));
      std::optional<OpId>& before = last[op.rank][stream];
      if (before) after.push_back(*before);
      before = OpId{i};
    }
    turned.add(op, after);
  }
  return turned;
}

}  // namespace stepsim
