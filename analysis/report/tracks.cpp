#include "analysis/report/tracks.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepsim {
namespace {

constexpr std::size_t streams = stream_names.size();
using Rows = std::vector<std::vector<OpId>>;  // [rank * streams + stream], in order of start

Rows rows_of(const Run& run) {
  const auto ops = run.graph.ops();
  Rows rows(run.platform.devices.size() * streams);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.kind == OpKind::join || run.trace.finish[i] <= run.trace.start[i]) continue;
    const OpId id{static_cast<std::uint32_t>(i)};
    const auto add = [&](Rank rank) {
      rows[rank * streams + static_cast<std::size_t>(op.stream)].push_back(id);
    };
    if (op.pattern == no_pattern)
      add(op.rank);
    else
      for (const Rank rank : run.graph.patterns()[index(op.pattern)].members) add(rank);
  }
  const auto earlier = [&](OpId a, OpId b) {
    return run.trace.start[index(a)] < run.trace.start[index(b)];
  };
  for (std::vector<OpId>& row : rows)
    if (!std::ranges::is_sorted(row, earlier)) std::ranges::stable_sort(row, earlier);
  return rows;
}

// Calls with the first and the last of every run of operations that one span shows.
template <class Visit>
void for_spans(const Run& run, const std::vector<OpId>& row, double resolution,
               const Visit& visit) {
  const Trace& trace = run.trace;
  for (std::size_t first = 0; first < row.size();) {
    const double start = trace.start[index(row[first])];
    std::size_t end = first + 1;
    while (end < row.size() && trace.finish[index(row[end])] - start <= resolution) ++end;
    visit(first, end);
    first = end;
  }
}

std::size_t count_spans(const Run& run, const Rows& rows, double resolution) {
  std::size_t count = 0;
  for (const auto& row : rows)
    for_spans(run, row, resolution, [&](std::size_t, std::size_t) { ++count; });
  return count;
}

// The finest of the halvings of the step that is coarse enough.
double resolution_for(const Run& run, const Rows& rows, std::size_t most_spans) {
  if (count_spans(run, rows, 0) <= most_spans) return 0;
  constexpr int finest = 24;
  for (int halvings = finest; halvings > 0; --halvings) {
    const double resolution = std::ldexp(run.trace.makespan.value, -halvings);
    if (count_spans(run, rows, resolution) <= most_spans) return resolution;
  }
  return run.trace.makespan.value;
}

void add_span(const Run& run, std::span<const OpId> ops, Track& track) {
  const auto seconds = [&](OpId id) {
    return run.trace.finish[index(id)] - run.trace.start[index(id)];
  };
  std::array<double, cause_names.size()> busy{};
  Span span{.start = run.trace.start[index(ops.front())],
            .count = static_cast<std::uint32_t>(ops.size()),
            .longest = ops.front(),
            .first_share = static_cast<std::uint32_t>(track.shares.size())};
  for (const OpId id : ops) {
    busy[static_cast<std::size_t>(run.graph[id].cause)] += seconds(id);
    span.finish = std::max(span.finish, run.trace.finish[index(id)]);
    if (seconds(id) > seconds(span.longest)) span.longest = id;
  }
  for (std::size_t cause = 0; cause < busy.size(); ++cause)
    if (busy[cause] > 0) track.shares.push_back({static_cast<Cause>(cause), busy[cause]});
  span.shares = static_cast<std::uint32_t>(track.shares.size()) - span.first_share;
  track.spans.push_back(span);
}

}  // namespace

std::size_t Tracks::spans() const {
  std::size_t sum = 0;
  for (const Track& track : list) sum += track.spans.size();
  return sum;
}

Tracks tracks_of(const Run& run, std::size_t most_spans) {
  const Rows rows = rows_of(run);
  Tracks tracks;
  tracks.resolution = resolution_for(run, rows, most_spans);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    Track track{.rank = static_cast<Rank>(i / streams),
                .stream = static_cast<Stream>(i % streams),
                .spans = {},
                .shares = {}};
    for_spans(run, rows[i], tracks.resolution, [&](std::size_t first, std::size_t end) {
      add_span(run, std::span(rows[i]).subspan(first, end - first), track);
    });
    tracks.operations += rows[i].size();
    tracks.list.push_back(std::move(track));
  }
  return tracks;
}

}  // namespace stepsim
