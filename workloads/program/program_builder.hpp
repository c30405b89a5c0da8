// Writes a program once for all ranks that do the same: operations in program order on streams,
// collectives between the lanes that fold() found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/symmetry.hpp"
#include "workloads/collectives/plan.hpp"

namespace stepsim {

// All traffic that a program may use, folded together: classes have to agree across patterns.
struct Traffic {
  std::vector<CollectivePlan> plans;      // without the patterns of all groups
  Folded folded;                          // family = one candidate of one plan, in order
  std::vector<std::size_t> first_family;  // per plan

  std::size_t lanes() const { return folded.rank_of.size(); }
};
Traffic make_traffic(const Machinery& machinery, std::vector<CollectivePlan> plans,
                     Folding folding);

// Returns the number that a program's graph gives to the first pattern of a family.
PatternId first_pattern(const Traffic& traffic, std::size_t family);

// The whole, to be replayed; the same with the memory of one lane of each part alone, since all
// hold the same; or only what memory in program order needs, or only sums: see OpGraph.
enum class Written : std::uint8_t { whole, figures, memory, sums };

// A mark is what an operation that every lane of a part did left behind: one operation per lane, to
// be waited for.
enum class Mark : std::uint32_t {};

// A range is lanes next to each other: all, or those of one pipeline stage.
struct LaneRange {
  Rank first = 0, end = 0;

  bool holds(Rank lane) const { return first <= lane && lane < end; }
};

class ProgramBuilder {
 public:
  // A program of more than `budget` operations is refused while it is written.
  explicit ProgramBuilder(const Traffic& traffic, Written written = Written::whole,
                          double budget = std::numeric_limits<double>::infinity());

  OpGraph& graph() { return graph_; }
  Rank lanes() const { return static_cast<Rank>(traffic_.lanes()); }
  LaneRange all() const { return {0, lanes()}; }
  // Writes a part of the lanes alone from now on: groups of others do nothing.
  void select(LaneRange lanes) { part_ = lanes; }
  LaneRange part() const { return part_; }
  // Returns those lanes of the part whose memory is written.
  LaneRange holders() const {
    return written_ == Written::figures || written_ == Written::sums
               ? LaneRange{part_.first, std::min(part_.first + 1, part_.end)}
               : part_;
  }

  // After the last operation on the stream of op.rank, and after whatever else is named.
  OpId add(const Op& op, std::span<const OpId> after = {});
  // Lets every lane do this, after what it did on the stream before and after the marks.
  Mark everywhere(Op op, std::initializer_list<Mark> after = {});
  // Lets all groups of a plan do it; each waits for its members' streams and, on every member, for
  // the last operation of stream `also`. The candidate is the cheapest for the size unless named.
  Mark collective(std::size_t plan, Op op, Stream also, std::initializer_list<Mark> after = {});
  Mark collective_as(std::size_t plan, std::size_t candidate, Op op, Stream also,
                     std::initializer_list<Mark> after = {});
  // Sends from the first member of each group, one of the lanes that are selected, to the second,
  // one of `targets`. What these did so far on any stream is not waited for.
  struct Sent {
    Mark at_source, at_target;
  };
  Sent send(std::size_t plan, Op op, LaneRange targets, std::initializer_list<Mark> source_after,
            std::initializer_list<Mark> target_after);
  // Returns the operation that a lane left at a mark.
  OpId operation(Mark mark, Rank lane) const { return marks_[place(mark, lane)]; }
  // The next operation on `stream` starts after the last one on `before`.
  void wait(Stream stream, Stream before);

  OpGraph take() { return std::move(graph_); }

 private:
  OpId& last(Rank lane, Stream stream) {
    return last_[lane * stream_names.size() + static_cast<std::size_t>(stream)];
  }

  // A mark is where lane 0 would stand; not all lanes are there.
  static std::size_t place(Mark mark, Rank lane) {
    return static_cast<std::uint32_t>(static_cast<std::uint32_t>(mark) + lane);
  }
  void set(Mark mark, Rank lane, OpId id) { marks_[place(mark, lane)] = id; }
  Mark new_mark(LaneRange lanes);
  void wait_for(std::initializer_list<Mark> marks, Rank lane);

  const Traffic& traffic_;
  Written written_;
  double budget_;
  LaneRange part_;
  OpGraph graph_;
  std::vector<std::vector<PatternId>> patterns_;  // [family][pattern]
  std::vector<OpId> last_;                        // [lane][stream]
  std::vector<OpId> marks_;                       // [mark][lane of its part]
  std::vector<OpId> after_;                       // scratch
};

}  // namespace stepsim
