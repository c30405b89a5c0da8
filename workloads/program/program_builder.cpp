#include "workloads/program/program_builder.hpp"

#include "sim/budget.hpp"

namespace stepsim {
namespace {

constexpr OpId no_operation{std::numeric_limits<std::uint32_t>::max()};

}  // namespace

Traffic make_traffic(const Machinery& machinery, std::vector<CollectivePlan> plans,
                     Folding folding) {
  Traffic traffic;
  std::vector<Family> families;
  for (CollectivePlan& plan : plans) {
    traffic.first_family.push_back(families.size());
    for (Candidate& candidate : plan.candidates) families.push_back(std::move(candidate.patterns));
  }
  traffic.folded = fold(machinery, families, folding);
  traffic.plans = std::move(plans);
  return traffic;
}

PatternId first_pattern(const Traffic& traffic, std::size_t family) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < family; ++i) before += traffic.folded.families[i].size();
  return PatternId{static_cast<std::uint32_t>(before)};
}

ProgramBuilder::ProgramBuilder(const Traffic& traffic, Written written, double budget)
    : traffic_(traffic),
      written_(written),
      // Labels take a tenth of what operations take, and sums nothing.
      budget_(written == Written::sums ? std::numeric_limits<double>::infinity()
                                       : budget * (written == Written::memory ? 10 : 1)),
      part_(all()),
      last_(traffic.lanes() * stream_names.size(), no_operation) {
  // Address space for a usual step, not memory: what stays empty is never touched, and a program
  // that grows does not move.
  constexpr std::size_t usual = 1 << 19;
  if (written == Written::memory) graph_.keep_labels_only();
  if (written == Written::sums) graph_.keep_sums_only();
  graph_.reserve(usual, 2 * usual, usual);
  constexpr std::size_t most_marks = std::size_t{1} << 22;
  marks_.reserve(std::min(usual * traffic.lanes(), most_marks));
  for (const Family& family : traffic.folded.families) {
    std::vector<PatternId>& ids = patterns_.emplace_back();
    for (const Pattern& pattern : family) ids.push_back(graph_.pattern(pattern));
  }
}

OpId ProgramBuilder::add(const Op& op, std::span<const OpId> after) {
  OpId& previous = last(op.rank, op.stream);
  after_.assign(after.begin(), after.end());
  if (previous != no_operation) after_.push_back(previous);
  previous = graph_.add(op, after_);
  return previous;
}

Mark ProgramBuilder::new_mark(LaneRange lanes) {
  require_within(static_cast<double>(graph_.size()), budget_);
  const std::size_t begin = marks_.size();
  marks_.resize(begin + lanes.end - lanes.first, no_operation);
  return Mark{static_cast<std::uint32_t>(begin) - lanes.first};
}

// Adds to `after_` what this lane left at the marks.
void ProgramBuilder::wait_for(std::initializer_list<Mark> marks, Rank lane) {
  for (const Mark mark : marks)
    if (const OpId id = operation(mark, lane); id != no_operation) after_.push_back(id);
}

Mark ProgramBuilder::everywhere(Op op, std::initializer_list<Mark> after) {
  const Mark mark = new_mark(part_);
  for (Rank lane = part_.first; lane < part_.end; ++lane) {
    after_.clear();
    op.rank = lane;
    OpId& previous = last(lane, op.stream);
    if (previous != no_operation) after_.push_back(previous);
    wait_for(after, lane);
    previous = graph_.add(op, after_);
    set(mark, lane, previous);
  }
  return mark;
}

void ProgramBuilder::wait(Stream stream, Stream before) {
  for (Rank lane = part_.first; lane < part_.end; ++lane) {
    after_.clear();
    for (const OpId id : {last(lane, stream), last(lane, before)})
      if (id != no_operation) after_.push_back(id);
    if (after_.empty()) continue;
    last(lane, stream) = graph_.add(
        {.kind = OpKind::join, .stream = stream, .rank = lane, .name = graph_.name("wait")},
        after_);
  }
}

Mark ProgramBuilder::collective(std::size_t plan, Op op, Stream also,
                                std::initializer_list<Mark> after) {
  return collective_as(plan, choose(traffic_.plans[plan], op.bytes), op, also, after);
}

Mark ProgramBuilder::collective_as(std::size_t plan, std::size_t candidate, Op op, Stream also,
                                   std::initializer_list<Mark> after) {
  const std::size_t family = traffic_.first_family[plan] + candidate;
  const Mark mark = new_mark(part_);
  for (const PatternId id : patterns_[family]) {
    const Pattern& pattern = graph_.patterns()[index(id)];
    if (!part_.holds(pattern.members.front())) continue;
    after_.clear();
    for (const Rank member : pattern.members) {
      for (const Stream stream : {op.stream, also})
        if (const OpId before = last(member, stream); before != no_operation)
          after_.push_back(before);
      wait_for(after, member);
    }
    op.pattern = id;
    op.rank = pattern.members.front();
    const OpId made = graph_.add(op, after_);
    for (const Rank member : pattern.members) {
      last(member, op.stream) = made;
      set(mark, member, made);
    }
  }
  // One rank has nobody to exchange with: the instant remains, for whoever waits for it.
  for (Rank lane = part_.first; patterns_[family].empty() && lane < part_.end; ++lane) {
    after_.clear();
    for (const Stream stream : {op.stream, also})
      if (const OpId before = last(lane, stream); before != no_operation) after_.push_back(before);
    wait_for(after, lane);
    op.kind = OpKind::join;
    op.rank = lane;
    last(lane, op.stream) = graph_.add(op, after_);
    set(mark, lane, last(lane, op.stream));
  }
  return mark;
}

ProgramBuilder::Sent ProgramBuilder::send(std::size_t plan, Op op, LaneRange targets,
                                          std::initializer_list<Mark> source_after,
                                          std::initializer_list<Mark> target_after) {
  const std::size_t family = traffic_.first_family[plan] + choose(traffic_.plans[plan], op.bytes);
  const Sent sent{new_mark(part_), new_mark(targets)};
  for (const PatternId id : patterns_[family]) {
    const Pattern& pattern = graph_.patterns()[index(id)];
    const Rank source = pattern.members.front(), target = pattern.members.back();
    if (!part_.holds(source) || !targets.holds(target)) continue;
    after_.clear();
    wait_for(source_after, source);
    wait_for(target_after, target);
    op.pattern = id;
    op.rank = source;
    const OpId made = graph_.add(op, after_);
    set(sent.at_source, source, made);
    set(sent.at_target, target, made);
  }
  return sent;
}

}  // namespace stepsim
