#include "analysis/breakdown.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "analysis/rank_sweep.hpp"

namespace stepsim {

Rank busiest_rank(const OpGraph& graph, const Trace& trace) {
  constexpr double alike = 1e-3;
  std::vector<double> busy;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.kind != OpKind::compute) continue;
    busy.resize(std::max<std::size_t>(busy.size(), op.rank + 1));
    busy[op.rank] += trace.repeat.seconds(trace.start[i], trace.finish[i]);
  }
  if (busy.empty()) return 0;
  const double enough = (1 - alike) * std::ranges::max(busy);
  const auto first = std::ranges::find_if(busy, [&](double each) { return each >= enough; });
  return static_cast<Rank>(first - busy.begin());
}

Breakdown break_down(const OpGraph& graph, const Trace& trace, Rank rank) {
  RankAtWork active;
  ByCause<double> exposed{}, busy{};
  double idle = 0, now = 0;
  const auto pass = [&](double until) {
    const double span = trace.repeat.seconds(now, until);
    now = until;
    if (span <= 0) return;
    if (const auto cause = active.exposed())
      exposed[*cause] += span;
    else
      idle += span;
    for (std::uint32_t all = active.bits(); all != 0; all &= all - 1)
      busy[static_cast<std::size_t>(std::countr_zero(all))] += span;
  };
  const auto edges = edges_by_rank(graph, trace, rank + 1, rank);
  for (const RankEdge& edge : edges[rank]) {
    pass(edge.time);
    active.change(edge);
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
