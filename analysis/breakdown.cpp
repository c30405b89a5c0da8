#include "analysis/breakdown.hpp"

#include <algorithm>
#include <array>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t causes = cause_names.size();

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

// A lane of a pipeline stage begins to wait for another one when it has done all that it had to.
double wait_begins(const OpGraph& graph, const Trace& trace, OpId wait) {
  double done = 0;
  for (const OpId before : graph.predecessors(wait))
    if (graph[before].pattern == no_pattern && graph[before].rank == graph[wait].rank)
      done = std::max(done, trace.finish[index(before)]);
  return done;
}

bool belongs(const OpGraph& graph, const Op& op, Rank rank) {
  if (op.pattern == no_pattern) return op.rank == rank;
  const auto& members = graph.patterns()[index(op.pattern)].members;
  return holds(members, rank);
}

std::vector<Edge> edges_of(const OpGraph& graph, const Trace& trace, Rank rank) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    const auto cause = static_cast<std::uint8_t>(op.cause);
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
  std::ranges::stable_sort(edges, {}, &Edge::time);
  return edges;
}

}  // namespace

Breakdown break_down(const OpGraph& graph, const Trace& trace, Rank rank) {
  std::array<std::array<int, causes>, 4> active{};
  std::array<double, causes> exposed{}, busy{};
  double idle = 0, now = 0;
  const auto pass = [&](double until) {
    const double span = until - now;
    now = until;
    if (span <= 0) return;
    bool taken = false;
    for (std::size_t c = 0; c < causes; ++c)
      if (active[1][c] + active[2][c] + active[3][c] > 0) busy[c] += span;
    for (std::size_t level = 3; level > 0 && !taken; --level)
      for (std::size_t c = 0; c < causes && !taken; ++c)
        if (active[level][c] > 0) {
          exposed[c] += span;
          taken = true;
        }
    if (!taken) idle += span;
  };
  for (const Edge& edge : edges_of(graph, trace, rank)) {
    pass(edge.time);
    active[edge.level][edge.cause] += edge.step;
  }
  pass(trace.makespan.value);
  Breakdown result;
  result.idle = {idle};
  for (std::size_t c = 0; c < causes; ++c)
    if (busy[c] > 0)
      result.rows.push_back({static_cast<Cause>(c), {exposed[c]}, {busy[c] - exposed[c]}});
  std::ranges::stable_sort(result.rows,
                           [](const auto& a, const auto& b) { return a.exposed > b.exposed; });
  return result;
}

}  // namespace stepsim
