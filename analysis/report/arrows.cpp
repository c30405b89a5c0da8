#include "analysis/report/arrows.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

bool lasts(const Run& run, OpId id) {
  return nanoseconds(run.trace.finish[index(id)]) > nanoseconds(run.trace.start[index(id)]);
}

// Returns what an operation waited for through instants: of those, the last to come.
std::optional<OpId> work_behind(const Run& run, OpId id) {
  while (!lasts(run, id)) {
    const auto before = run.graph.predecessors(id);
    if (before.empty()) return std::nullopt;
    id = *std::ranges::max_element(before, [&](OpId a, OpId b) {
      return run.trace.finish[index(a)] < run.trace.finish[index(b)];
    });
  }
  return id;
}

bool is_member(const Run& run, const Op& op, Rank rank) {
  if (op.pattern == no_pattern) return op.rank == rank;
  const auto& members = run.graph.patterns()[index(op.pattern)].members;
  return holds(members, rank);
}

// Returns what arrows to this operation come from: the last that each rank's host did before it,
// and all work that a collective waited for.
std::vector<OpId> sources_of(const Run& run, OpId id, const std::vector<bool>& shown) {
  const Op& op = run.graph[id];
  std::vector<OpId> sources;
  for (const OpId before : run.graph.predecessors(id)) {
    const auto from = work_behind(run, before);
    if (!from || !shown[index(*from)]) continue;
    const Op& source = run.graph[*from];
    if (source.kind != OpKind::host) {
      const bool own_stream = source.stream == op.stream && source.rank == op.rank;
      if (op.kind == OpKind::collective && !own_stream) sources.push_back(*from);
      continue;
    }
    const auto rival = std::ranges::find_if(sources, [&](OpId other) {
      return run.graph[other].kind == OpKind::host && run.graph[other].rank == source.rank;
    });
    if (rival == sources.end())
      sources.push_back(*from);
    else if (run.trace.finish[index(*rival)] < run.trace.finish[index(*from)])
      *rival = *from;
  }
  return sources;
}

// Returns the arrows between operations that are shown.
std::vector<Arrow> arrows_of(const Run& run, const std::vector<bool>& shown) {
  std::vector<Arrow> arrows;
  for (std::uint32_t i = 0; i < run.graph.size(); ++i) {
    const Op& op = run.graph.ops()[i];
    if (!shown[i] || op.stream == Stream::host || !lasts(run, OpId{i})) continue;
    for (const OpId from : sources_of(run, OpId{i}, shown)) {
      const Rank rank = run.graph[from].rank;
      arrows.push_back({from, OpId{i}, rank, is_member(run, op, rank) ? rank : op.rank});
    }
  }
  return arrows;
}

std::vector<bool> shown_alone(const Run& run, const Tracks& tracks) {
  std::vector<bool> shown(run.graph.size(), false);
  for (const Track& track : tracks.list)
    for (const Span& span : track.spans)
      if (span.count == 1) shown[index(span.longest)] = true;
  return shown;
}

}  // namespace

TracksAndArrows tracks_and_arrows(const Run& run, std::size_t most_events) {
  Tracks tracks = tracks_of(run, most_events);
  std::vector<Arrow> arrows = arrows_of(run, shown_alone(run, tracks));
  for (std::size_t spans = most_events / 2;
       tracks.spans() + 2 * arrows.size() > most_events && spans > 0; spans /= 2) {
    tracks = tracks_of(run, spans);
    arrows = arrows_of(run, shown_alone(run, tracks));
  }
  return {std::move(tracks), std::move(arrows)};
}

}  // namespace stepsim
