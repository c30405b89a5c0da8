#include "analysis/rank_sweep.hpp"

#include <algorithm>
#include <span>

namespace stepsim {
namespace {

using EdgesOfStreams = std::array<std::vector<RankEdge>, stream_names.size()>;

std::uint8_t urgency(OpKind kind) {
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

// Merges the streams in the order of time, in which the operations of each mostly are already.
std::vector<RankEdge> merged(EdgesOfStreams& streams) {
  std::vector<std::span<const RankEdge>> left;
  std::size_t count = 0;
  for (std::vector<RankEdge>& edges : streams) {
    if (!std::ranges::is_sorted(edges, {}, &RankEdge::time))
      std::ranges::stable_sort(edges, {}, &RankEdge::time);
    if (!edges.empty()) left.emplace_back(edges);
    count += edges.size();
  }
  std::vector<RankEdge> all;
  all.reserve(count);
  const auto begins = [](std::span<const RankEdge> edges) { return edges.front().time; };
  while (!left.empty()) {
    const auto next = std::ranges::min_element(left, {}, begins);
    all.push_back(next->front());
    *next = next->subspan(1);
    if (next->empty()) left.erase(next);
  }
  return all;
}

// Adds the time in which the rank waits for other stages until the operation starts. It is exposed
// where no transfer runs, whose causes come before it, even if the host runs ahead.
void add_bubble(const OpGraph& graph, const Trace& trace, std::size_t i, EdgesOfStreams& streams) {
  const Op& op = graph.ops()[i];
  const double begins = wait_begins(graph, trace, OpId{static_cast<std::uint32_t>(i)});
  if (begins >= trace.start[i]) return;
  RankEdge edge{.time = begins,
                .step = +1,
                .level = urgency(OpKind::collective),
                .cause = static_cast<std::uint8_t>(op.cause),
                .kind = OpKind::join};
  std::vector<RankEdge>& edges = streams[static_cast<std::size_t>(op.stream)];
  edges.push_back(edge);
  edge.time = trace.start[i];
  edge.step = -1;
  edges.push_back(edge);
}

}  // namespace

std::vector<std::vector<RankEdge>> edges_by_rank(const OpGraph& graph, const Trace& trace,
                                                 std::size_t ranks, std::optional<Rank> only) {
  std::vector<EdgesOfStreams> streams(ranks);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.kind == OpKind::join) {
      if (op.cause == Cause::pipeline_bubble && (!only || op.rank == *only))
        add_bubble(graph, trace, i, streams[op.rank]);
      continue;
    }
    if (trace.finish[i] <= trace.start[i]) continue;
    RankEdge edge{.time = trace.start[i],
                  .step = +1,
                  .level = urgency(op.kind),
                  .cause = static_cast<std::uint8_t>(op.cause),
                  .streaming = op.streaming,
                  .kind = op.kind};
    const std::span<const Rank> members =
        op.pattern == no_pattern
            ? std::span(&op.rank, 1)
            : std::span<const Rank>(graph.patterns()[index(op.pattern)].members);
    for (const Rank rank : members) {
      if (only && rank != *only) continue;
      std::vector<RankEdge>& edges = streams[rank][static_cast<std::size_t>(op.stream)];
      edges.push_back(edge);
      edges.push_back(edge);
      edges.back().time = trace.finish[i];
      edges.back().step = -1;
    }
  }
  std::vector<std::vector<RankEdge>> all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) all[rank] = merged(streams[rank]);
  return all;
}

}  // namespace stepsim
