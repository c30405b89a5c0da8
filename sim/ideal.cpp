#include "sim/ideal.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr OpId nothing{std::numeric_limits<std::uint32_t>::max()};
// Instants with more predecessors than this stay: their successors would each wait for all of them.
constexpr std::size_t most_handed_on = 2;

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

// Timers of one rank may be added up, and so may its kernels: whatever slows one slows the other.
bool alike(const Op& a, const Op& b) {
  const bool timers = is_timer(a) && is_timer(b);
  const bool kernels = a.kind == OpKind::compute && b.kind == OpKind::compute;
  return (timers || kernels) && a.rank == b.rank;
}

// What is left of a program: operations that cost something, and the joins between them.
class Contraction {
 public:
  Contraction(const OpGraph& graph, CauseSet free, Causes causes = Causes::merged)
      : graph_(graph), free_(free), causes_(causes) {
    // Address space, not memory: what stays empty is never touched, and nothing has to move.
    first_.reserve(graph.size() + 1);
    kept_.reserve(graph.size());
    waits_.reserve(graph.edges().size());
    stand_ins_.reserve(most_handed_on * graph.size());
    first_.push_back(0);
  }

  OpGraph run() {
    pass_all();
    return merge_chains();
  }

  std::optional<Beginning> beginning() {
    pass_all();
    if (kept_.empty()) return std::nullopt;
    const Op& first = graph_[kept_.front().id];
    for (std::uint32_t i = 0; i < kept_.size(); ++i) {
      const Op& op = graph_[kept_[i].id];
      const bool begins = waits(i).empty();
      if (begins != (op.cause == first.cause)) return std::nullopt;
      if (begins && (!is_timer(op) || op.seconds != first.seconds)) return std::nullopt;
    }
    return Beginning{first.cause, first.seconds};
  }

 private:
  struct Kept {
    OpId id{};
    bool free = false;
    std::uint32_t first = 0, last = 0;  // its waits
  };

  std::span<const std::uint32_t> stand_ins(OpId id) const {
    return std::span(stand_ins_)
        .subspan(first_[index(id)], first_[index(id) + 1] - first_[index(id)]);
  }
  std::span<const std::uint32_t> waits(std::uint32_t kept) const {
    return std::span(waits_).subspan(kept_[kept].first, kept_[kept].last - kept_[kept].first);
  }

  bool one_chain(const Op& before, const Op& after) const {
    return alike(before, after) && (causes_ == Causes::merged || before.cause == after.cause);
  }

  // As it is replayed.
  Op left_of(std::uint32_t kept) const {
    Op op = graph_[kept_[kept].id];
    if (kept_[kept].free) {
      op.kind = OpKind::join;
      op.pattern = no_pattern;
      op.seconds = {};
      op.bytes = {};
    }
    return op;
  }

  bool waits_for(std::uint32_t later, std::uint32_t earlier) const {
    const auto list = waits(later);
    return holds(list, earlier);
  }

  // A wait is dropped when another one waits for the same, at one remove or two.
  bool implied(std::uint32_t earlier) const {
    return std::ranges::any_of(scratch_, [&](std::uint32_t other) {
      if (other <= earlier) return false;
      if (waits_for(other, earlier)) return true;
      const auto list = waits(other);
      return std::ranges::any_of(list, [&](std::uint32_t middle) {
        return middle > earlier && waits_for(middle, earlier);
      });
    });
  }

  void gather_waits(OpId id) {
    scratch_.clear();
    for (const OpId from : graph_.predecessors(id)) {
      const auto list = stand_ins(from);
      scratch_.insert(scratch_.end(), list.begin(), list.end());
    }
    std::ranges::sort(scratch_);
    scratch_.erase(std::unique(scratch_.begin(), scratch_.end()), scratch_.end());
    if (scratch_.size() < 2) return;
    needed_.clear();
    for (const std::uint32_t earlier : scratch_)
      if (!implied(earlier)) needed_.push_back(earlier);
    scratch_.swap(needed_);
  }

  void pass_all() {
    for (std::size_t i = 0; i < graph_.size(); ++i) pass(OpId{static_cast<std::uint32_t>(i)});
  }

  void pass(OpId id) {
    gather_waits(id);
    const Op& op = graph_[id];
    const bool free = free_.has(op.cause) || !costs(op, graph_.patterns());
    if (free && scratch_.size() <= most_handed_on) {
      stand_ins_.insert(stand_ins_.end(), scratch_.begin(), scratch_.end());
    } else {
      Kept kept{id, free, static_cast<std::uint32_t>(waits_.size()), 0};
      waits_.insert(waits_.end(), scratch_.begin(), scratch_.end());
      kept.last = static_cast<std::uint32_t>(waits_.size());
      stand_ins_.push_back(static_cast<std::uint32_t>(kept_.size()));
      kept_.push_back(kept);
    }
    first_.push_back(static_cast<std::uint32_t>(stand_ins_.size()));
  }

  OpGraph merge_chains() const {
    std::vector<std::uint32_t> followers(kept_.size(), 0);
    for (const std::uint32_t earlier : waits_) ++followers[earlier];
    // The head of the chain that an operation is part of, and the sum of the chain at its head.
    std::vector<std::uint32_t> head(kept_.size());
    std::vector<double> seconds(kept_.size(), 0);
    for (std::uint32_t i = 0; i < kept_.size(); ++i) {
      const auto list = waits(i);
      const bool goes_on = list.size() == 1 && followers[list.front()] == 1 &&
                           one_chain(left_of(head[list.front()]), left_of(i));
      head[i] = goes_on ? head[list.front()] : i;
      seconds[head[i]] += left_of(i).seconds.value;
    }
    OpGraph graph;
    graph.reserve(kept_.size(), waits_.size(), 0);
    for (const Pattern& pattern : graph_.patterns()) graph.pattern(pattern);
    const NameId name = graph.name("");
    std::vector<OpId> made(kept_.size(), nothing);
    std::vector<OpId> after;
    for (std::uint32_t i = 0; i < kept_.size(); ++i) {
      if (head[i] != i) continue;
      Op op = left_of(i);
      op.name = name;
      if (!carries_traffic(op)) op.seconds = {seconds[i]};
      after.clear();
      for (const std::uint32_t earlier : waits(i)) after.push_back(made[head[earlier]]);
      made[i] = graph.add(op, after);
    }
    return graph;
  }

  const OpGraph& graph_;
  CauseSet free_;
  Causes causes_;
  std::vector<Kept> kept_;
  std::vector<std::uint32_t> waits_;      // of all that is kept
  std::vector<std::uint32_t> stand_ins_;  // of each operation: what is done when it would be
  std::vector<std::uint32_t> first_;      // [operation]: the first of its stand-ins
  std::vector<std::uint32_t> scratch_, needed_;
};

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
  return Contraction(graph, {}).beginning();
}

OpGraph idealised(const OpGraph& graph, CauseSet causes) {
  OpGraph result = graph;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (const OpId id{static_cast<std::uint32_t>(i)}; causes.has(graph[id].cause))
      result.make_free(id);
  return result;
}

OpGraph contracted(const OpGraph& graph, CauseSet free, Causes causes) {
  return Contraction(graph, free, causes).run();
}

}  // namespace stepsim
