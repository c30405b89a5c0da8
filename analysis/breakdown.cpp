#include "analysis/breakdown.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

int urgency(OpKind kind) {
  switch (kind) {
    case OpKind::compute:
      return 3;
    case OpKind::collective:
    case OpKind::transfer:
    case OpKind::cpu:
      return 2;
    default:
      return 1;
  }
}

struct Edge {
  double time;
  int step;  // +1 begins, -1 ends
  std::uint8_t level;
  std::uint8_t cause;
};

bool belongs(const OpGraph& graph, const Op& op, Rank rank) {
  if (op.pattern == no_pattern) return op.rank == rank;
  const auto& members = graph.patterns()[index(op.pattern)].members;
  return holds(members, rank);
}

// What happens on one stream comes in the order of time.
std::vector<Edge> merged(std::array<std::vector<Edge>, stream_names.size()>& streams) {
  std::vector<std::span<const Edge>> left;
  std::size_t count = 0;
  for (std::vector<Edge>& edges : streams) {
    if (!std::ranges::is_sorted(edges, {}, &Edge::time))
      std::ranges::stable_sort(edges, {}, &Edge::time);
    if (!edges.empty()) left.emplace_back(edges);
    count += edges.size();
  }
  std::vector<Edge> all;
  all.reserve(count);
  const auto begins = [](std::span<const Edge> edges) { return edges.front().time; };
  while (!left.empty()) {
    const auto next = std::ranges::min_element(left, {}, begins);
    all.push_back(next->front());
    *next = next->subspan(1);
    if (next->empty()) left.erase(next);
  }
  return all;
}

std::vector<Edge> edges_of(const OpGraph& graph, const Trace& trace, Rank rank) {
  std::array<std::vector<Edge>, stream_names.size()> streams;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    const auto cause = static_cast<std::uint8_t>(op.cause);
    std::vector<Edge>& edges = streams[static_cast<std::size_t>(op.stream)];
    if (op.cause == Cause::pipeline_bubble && op.kind == OpKind::join && op.rank == rank) {
      // Behind transfers, which are named before it, and before the host's running ahead.
      const auto level = static_cast<std::uint8_t>(urgency(OpKind::collective));
      const double begins = wait_begins(graph, trace, OpId{static_cast<std::uint32_t>(i)});
      if (begins >= trace.start[i]) continue;
      edges.push_back({begins, +1, level, cause});
      edges.push_back({trace.start[i], -1, level, cause});
    }
    if (op.kind == OpKind::join || trace.finish[i] <= trace.start[i]) continue;
    if (!belongs(graph, op, rank)) continue;
    const auto level = static_cast<std::uint8_t>(urgency(op.kind));
    edges.push_back({trace.start[i], +1, level, cause});
    edges.push_back({trace.finish[i], -1, level, cause});
  }
  return merged(streams);
}

// Which causes are at work, as bits, and how many operations of each.
struct AtWork {
  ByCause<int> count{};
  std::uint32_t bits = 0;

  void change(std::size_t cause, int by) {
    count[cause] += by;
    const std::uint32_t bit = std::uint32_t{1} << cause;
    bits = count[cause] > 0 ? bits | bit : bits & ~bit;
  }
};
static_assert(cause_count <= 32);

}  // namespace

Breakdown break_down(const OpGraph& graph, const Trace& trace, Rank rank) {
  std::array<AtWork, 4> active{};  // by urgency
  ByCause<double> exposed{}, busy{};
  double idle = 0, now = 0;
  const auto pass = [&](double until) {
    const double span = trace.repeat.seconds(now, until);
    now = until;
    if (span <= 0) return;
    std::uint32_t all = active[1].bits | active[2].bits | active[3].bits;
    if (all == 0) idle += span;
    for (; all != 0; all &= all - 1) busy[static_cast<std::size_t>(std::countr_zero(all))] += span;
    for (std::size_t level = 3; level > 0; --level) {
      if (active[level].bits == 0) continue;
      exposed[static_cast<std::size_t>(std::countr_zero(active[level].bits))] += span;
      break;
    }
  };
  for (const Edge& edge : edges_of(graph, trace, rank)) {
    pass(edge.time);
    active[edge.level].change(edge.cause, edge.step);
  }
  pass(trace.makespan.value - trace.repeat.added());
  Breakdown result;
  result.idle = {idle};
  for (std::size_t c = 0; c < cause_count; ++c)
    if (busy[c] > 0)
      result.rows.push_back({static_cast<Cause>(c), {exposed[c]}, {busy[c] - exposed[c]}});
  std::ranges::stable_sort(result.rows,
                           [](const auto& a, const auto& b) { return a.exposed > b.exposed; });
  return result;
}

}  // namespace stepsim
