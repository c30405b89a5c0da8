#include "sim/ideal.hpp"

#include <algorithm>

namespace stepsim {
namespace {

bool carries_traffic(const Op& op) {
  return op.pattern != no_pattern;
}

bool costs(const Op& op, std::span<const Pattern> patterns) {
  if (!carries_traffic(op)) return op.kind != OpKind::join && op.seconds.value > 0;
  const Pattern& pattern = patterns[index(op.pattern)];
  return std::ranges::any_of(pattern.rounds, [&](const Round& round) {
    return round.latency.value > 0 || std::ranges::any_of(round.flows, [&](const Flow& flow) {
             return flow.wire * op.bytes.value > 0;
           });
  });
}

bool is_timer(const Op& op) {
  return op.kind == OpKind::host || op.kind == OpKind::delay;
}

}  // namespace

std::vector<Cause> members(CauseSet causes) {
  std::vector<Cause> list;
  for (std::size_t i = 0; i < cause_names.size(); ++i)
    if (causes.has(static_cast<Cause>(i))) list.push_back(static_cast<Cause>(i));
  return list;
}

CauseSet active_causes(const OpGraph& graph) {
  CauseSet causes;
  for (const Op& op : graph.ops())
    if (!causes.has(op.cause) && costs(op, graph.patterns())) causes.add(op.cause);
  return causes;
}

std::optional<Beginning> beginning_of(const OpGraph& graph) {
  std::vector<std::uint8_t> begun(graph.size(), 0);  // it waits for something that costs
  const Op* first = nullptr;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = graph[id];
    const auto before = graph.predecessors(id);
    const bool waits = std::ranges::any_of(before, [&](OpId other) { return begun[index(other)]; });
    const bool has_cost = costs(op, graph.patterns());
    begun[i] = waits || has_cost ? 1 : 0;
    if (!has_cost) continue;
    if (first == nullptr) first = &op;
    if (waits == (op.cause == first->cause)) return std::nullopt;
    if (!waits && (!is_timer(op) || op.seconds != first->seconds)) return std::nullopt;
  }
  if (first == nullptr) return std::nullopt;
  return Beginning{first->cause, first->seconds};
}

OpGraph idealised(const OpGraph& graph, CauseSet causes) {
  OpGraph result = graph;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (const OpId id{static_cast<std::uint32_t>(i)}; causes.has(graph[id].cause))
      result.make_free(id);
  return result;
}

}  // namespace stepsim
