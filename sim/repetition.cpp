#include "sim/repetition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

namespace stepsim {
namespace {

// Times that differ by less than this share of a period are one: they are sums in different orders.
constexpr double same_moment = 1e-11;
// Bytes that are left of sums which come to nothing, as a share of what came and went.
constexpr double no_bytes = 1e-9;

// The operations of one phase on one stream of one rank, in program order. Messages there and back
// share a stream, and may be written in either order.
using Line = std::vector<OpId>;

struct Lines {
  std::vector<Line> lines;            // [rank x stream x phase]
  std::vector<std::uint32_t> places;  // [operation] in its line

  explicit Lines(const OpGraph& graph) {
    places.reserve(graph.size());
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      const std::size_t line = of(graph.ops()[i]);
      if (line >= lines.size()) lines.resize(line + 1);
      places.push_back(static_cast<std::uint32_t>(lines[line].size()));
      lines[line].push_back(OpId{i});
    }
  }
  static std::size_t of(const Op& op) {
    const std::size_t stream = op.rank * stream_names.size() + static_cast<std::size_t>(op.stream);
    return stream * phase_names.size() + static_cast<std::size_t>(op.phase);
  }
};

// Effects list what begins or ends in memory with each operation, in the order in which it was
// written.
class Effects {
 public:
  explicit Effects(const OpGraph& graph)
      : sorted_(graph.memory().begin(), graph.memory().end()), ends_(graph.size() + 1) {
    std::ranges::stable_sort(sorted_, {}, &MemoryEffect::op);
    for (const MemoryEffect& effect : sorted_) ++ends_[index(effect.op) + 1];
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  }
  std::span<const MemoryEffect> of(OpId id) const {
    return std::span(sorted_).subspan(ends_[index(id)], ends_[index(id) + 1] - ends_[index(id)]);
  }

 private:
  std::vector<MemoryEffect> sorted_;
  std::vector<std::size_t> ends_;
};

bool same_effect(const MemoryEffect& a, const MemoryEffect& b) {
  const auto fields = [](const MemoryEffect& effect) {
    return std::tuple(effect.at_start, effect.pool, effect.rank, effect.tensor_class, effect.bytes);
  };
  return fields(a) == fields(b);
}

// Returns whether both do the same but for the micro-batch.
bool same_work(const Op& a, const Op& b) {
  const auto fields = [](const Op& op) {
    return std::tuple(op.kind, op.cause, op.layer, op.name, op.pattern, op.seconds.value,
                      op.bytes.value, op.flops.value);
  };
  return fields(a) == fields(b);
}

// A cut says where a line of the shorter program is cut to put more in.
struct Cut {
  std::size_t more = 0;   // operations
  std::size_t first = 0;  // from here on the shorter one's are alike those `more` later
  std::size_t end = 0;    // up to here they are alike those of the same place
};

class Comparison {
 public:
  Comparison(const OpGraph& shorter, const OpGraph& graph)
      : shorter_(shorter),
        graph_(graph),
        few_(shorter),
        all_(graph),
        few_effects_(shorter),
        all_effects_(graph) {}

  // Returns nothing where the shorter program is not the other one without a piece of each line.
  std::vector<Cut> cuts() {
    if (few_.lines.size() != all_.lines.size() ||
        !std::ranges::equal(shorter_.names(), graph_.names()))
      return {};
    for (std::size_t line = 0; line < few_.lines.size(); ++line) {
      if (all_.lines[line].size() < few_.lines[line].size()) return {};
      cuts_.push_back({.more = all_.lines[line].size() - few_.lines[line].size()});
    }
    for (std::size_t line = 0; line < cuts_.size(); ++line) {
      Cut& cut = cuts_[line];
      const std::size_t size = few_.lines[line].size();
      while (cut.end < size && same(line, cut.end, false)) ++cut.end;
      cut.first = size;
      while (cut.first > 0 && same(line, cut.first - 1, true)) --cut.first;
      if (cut.first > cut.end) return {};
    }
    return std::move(cuts_);
  }

  const std::vector<Line>& lines() const { return all_.lines; }
  std::uint32_t place(OpId id) const { return all_.places[index(id)]; }

 private:
  // An operation behind the pieces waits for others behind them, or for some before them.
  bool same(std::size_t line, std::size_t place, bool behind) const {
    const OpId a = few_.lines[line][place];
    const OpId b = all_.lines[line][place + (behind ? cuts_[line].more : 0)];
    return same_work(shorter_[a], graph_[b]) &&
           std::ranges::equal(few_effects_.of(a), all_effects_.of(b), same_effect) &&
           std::ranges::equal(
               shorter_.predecessors(a), graph_.predecessors(b), [&](OpId x, OpId y) {
                 const std::size_t other = Lines::of(graph_[y]);
                 if (Lines::of(shorter_[x]) != other) return false;
                 const std::size_t between = all_.places[index(y)] - few_.places[index(x)];
                 return between == 0 || (behind && between == cuts_[other].more);
               });
  }

  const OpGraph& shorter_;
  const OpGraph& graph_;
  Lines few_, all_;
  Effects few_effects_, all_effects_;
  std::vector<Cut> cuts_;
};

class Search {
 public:
  Search(const OpGraph& graph, const Comparison& programs, std::span<const Cut> cuts,
         const Trace& trace)
      : graph_(graph), lines_(programs.lines()), cuts_(cuts), trace_(trace) {}

  std::optional<Repeat> find() {
    find_end();
    find_period();
    if (!(period_ > 0)) return std::nullopt;
    lower_end();
    find_period();
    most_ = std::max(same_moment * period_, trace_.by.resolution());
    for (std::size_t line = 0; line < lines_.size(); ++line)
      if (!repeats(line)) return std::nullopt;
    return Repeat{.begin = end_ - period_, .period = period_};
  }

 private:
  // Returns when the operation starts; what counts as waiting for another stage begins with the
  // wait.
  double start(OpId id) const {
    return graph_[id].cause == Cause::pipeline_bubble ? wait_begins(graph_, trace_, id)
                                                      : trace_.start[index(id)];
  }
  double finish(OpId id) const { return trace_.finish[index(id)]; }
  // Returns the operation of the same line one piece earlier; nothing where it is not alike.
  std::optional<OpId> before(std::size_t line, std::size_t place) const {
    const Cut& cut = cuts_[line];
    if (cut.more == 0 || place < cut.first + cut.more || place >= cut.end + cut.more)
      return std::nullopt;
    return lines_[line][place - cut.more];
  }

  // When the first operation begins that is none of the repeated ones, nor before them.
  void find_end() {
    end_ = std::numeric_limits<double>::infinity();
    for (std::size_t line = 0; line < lines_.size(); ++line)
      for (std::size_t place = cuts_[line].end + cuts_[line].more; place < lines_[line].size();
           ++place)
        end_ = std::min(end_, start(lines_[line][place]));
  }

  // Lowers the end by operations that wait for something new: they would have begun a period after
  // their counterparts a piece earlier.
  void lower_end() {
    for (std::size_t line = 0; line < lines_.size(); ++line)
      for (std::size_t place = cuts_[line].end; place + cuts_[line].more < lines_[line].size();
           ++place)
        end_ = std::min(end_, start(lines_[line][place]) + period_);
  }

  void find_period() {
    double last = 0;
    for (std::size_t line = 0; line < lines_.size(); ++line)
      for (std::size_t place = 0; place < lines_[line].size(); ++place) {
        const OpId id = lines_[line][place];
        const auto earlier = before(line, place);
        if (!earlier || finish(id) >= end_ || finish(id) <= last) continue;
        last = finish(id);
        period_ = last - finish(*earlier);
      }
  }

  bool equal(double a, double b) const { return std::abs(a - b) <= most_; }
  bool runs_between(OpId id, double from, double to) const {
    return start(id) < to - most_ && finish(id) > from + most_;
  }

  // Whatever runs in the last period ran in the same way in the one before, and the other way
  // round; nothing is as long as a period.
  bool repeats(std::size_t line) const {
    const double middle = end_ - period_, begin = middle - period_;
    std::size_t started = 0;
    for (std::size_t place = 0; place < lines_[line].size(); ++place) {
      const OpId id = lines_[line][place];
      if (start(id) >= middle - most_ && start(id) < end_ - most_) ++started;
      if (runs_between(id, middle, end_) && !same_before(line, place)) return false;
      if (!runs_between(id, begin, middle)) continue;
      const std::size_t later = place + cuts_[line].more;
      if (later >= lines_[line].size() || !same_before(line, later)) return false;
    }
    return started == cuts_[line].more;
  }

  bool same_before(std::size_t line, std::size_t place) const {
    const OpId id = lines_[line][place];
    const auto earlier = before(line, place);
    if (!earlier || !equal(start(id) - period_, start(*earlier))) return false;
    if (finish(id) < end_ - most_) return equal(finish(id) - period_, finish(*earlier));
    return start(id) > end_ - period_ - most_ && finish(*earlier) > end_ - period_ - 2 * most_;
  }

  const OpGraph& graph_;
  const std::vector<Line>& lines_;
  std::span<const Cut> cuts_;
  const Trace& trace_;
  double end_ = 0, period_ = 0, most_ = 0;  // s
};

// Returns whether one piece of each line, at the end of those that are alike, frees all that it
// allocates.
bool keeps_nothing(const OpGraph& graph, const Comparison& programs, std::span<const Cut> cuts) {
  std::map<std::tuple<Rank, Pool, NameId>, std::pair<double, double>> held;  // left; came and went
  for (const MemoryEffect& effect : graph.memory()) {
    const Cut& cut = cuts[Lines::of(graph[effect.op])];
    const std::size_t place = programs.place(effect.op);
    if (place < cut.end || place >= cut.end + cut.more) continue;
    auto& [left, moved] = held[{effect.rank, effect.pool, effect.tensor_class}];
    left += effect.bytes;
    moved += std::abs(effect.bytes);
  }
  return std::ranges::all_of(held, [](const auto& each) {
    const auto& [left, moved] = each.second;
    return std::abs(left) <= no_bytes * moved;
  });
}

}  // namespace

bool holds_no_more(const OpGraph& shorter, const OpGraph& graph) {
  Comparison programs(shorter, graph);
  const std::vector<Cut> cuts = programs.cuts();
  return !cuts.empty() && keeps_nothing(graph, programs, cuts);
}

std::optional<Repeat> find_repeat(const OpGraph& shorter, const OpGraph& graph,
                                  const Trace& trace) {
  Comparison programs(shorter, graph);
  const std::vector<Cut> cuts = programs.cuts();
  if (cuts.empty() || !keeps_nothing(graph, programs, cuts)) return std::nullopt;
  return Search(graph, programs, cuts, trace).find();
}

}  // namespace stepsim
