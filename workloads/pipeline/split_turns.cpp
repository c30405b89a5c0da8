#include "workloads/pipeline/split_turns.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace stepsim {
namespace {

// This lists the turns of a stage with two pieces, and writes the next micro-batch of a piece.
class TurnList {
 public:
  void add(Pass pass, std::int64_t piece) {
    if (pass == Pass::weights) waiting_.erase(oldest(piece));
    const bool whole = pass == Pass::backward;
    turns_.push_back({pass, piece, next(whole ? Pass::inputs : pass, piece)++});
    if (whole) ++next(Pass::weights, piece);
    if (pass == Pass::inputs) waiting_.push_back(piece);
  }
  void add_pair(std::int64_t forward, std::int64_t backward) {
    add(Pass::forward, forward);
    turns_.back().with_next = true;
    add(Pass::backward, backward);
  }
  // The weights that have waited longest.
  void add_weights() {
    if (!waiting_.empty()) add(Pass::weights, waiting_.front());
  }
  void add_all_weights(std::int64_t piece) {
    while (oldest(piece) != waiting_.end()) add(Pass::weights, piece);
  }

  std::int64_t count(Pass pass, std::int64_t piece) { return next(pass, piece); }
  std::vector<Turn> take() { return std::move(turns_); }

 private:
  std::int64_t& next(Pass pass, std::int64_t piece) {
    return next_[static_cast<std::size_t>(pass)][static_cast<std::size_t>(piece)];
  }
  std::deque<std::int64_t>::iterator oldest(std::int64_t piece) {
    return std::find(waiting_.begin(), waiting_.end(), piece);
  }

  std::vector<Turn> turns_;
  std::array<std::array<std::int64_t, 2>, 4> next_{};  // [pass][piece]: micro-batch
  std::deque<std::int64_t> waiting_;                   // pieces whose weights do
};

void repeat(std::int64_t times, auto write) {
  for (std::int64_t i = 0; i < times; ++i) write(i);
}

// Zero Bubble Pipeline Parallelism (arXiv 2401.10241), ZB-H1, and over several pieces as in
// ScheduleInterleavedZeroBubble of github.com/pytorch/pytorch, torch/distributed/pipelining: half
// as many passes go ahead as otherwise, and on later stages as many weights wait as are missing
// there.
std::vector<Turn> first_half(const PipelineParallel& p, std::int64_t stage,
                             std::int64_t micro_batches) {
  const std::int64_t passes = micro_batches * p.virtual_stages;
  const std::int64_t ahead = std::min(passes, p.size - stage - 1 + (p.virtual_stages - 1) * p.size);
  std::vector<Turn> turns;
  for (std::int64_t pass = 0; pass < passes + ahead; ++pass) {
    if (pass < passes) turns.push_back(turn_round(p, pass, Pass::forward));
    if (pass < ahead) continue;
    turns.push_back(turn_round(p, pass - ahead, Pass::inputs));
    if (pass - ahead >= stage) turns.push_back(turn_round(p, pass - ahead - stage, Pass::weights));
  }
  for (std::int64_t pass = std::max<std::int64_t>(0, passes - stage); pass < passes; ++pass)
    turns.push_back(turn_round(p, pass, Pass::weights));
  return turns;
}

// ScheduleZBVZeroBubble of the same source: a list for as many micro-batches as fill the stages,
// out of which those are taken that there are.
std::vector<Turn> zero_bubble_v(const PipelineParallel& p, std::int64_t stage,
                                std::int64_t micro_batches) {
  using enum Pass;
  const std::int64_t all = std::max(2 * p.size - 1, micro_batches), rest = p.size - stage;
  TurnList list;
  repeat(2 * rest - 1, [&](auto) { list.add(forward, 0); });
  repeat(stage, [&](auto) { list.add(forward, 1), list.add(forward, 0); });
  const auto through = [&](std::int64_t piece) {
    list.add(inputs, piece);
    list.add(weights, piece);
  };
  repeat(rest, [&](auto) { list.add(forward, 1), through(1); });
  while (list.count(forward, 1) < all) {
    if (list.count(forward, 0) < all) list.add(forward, 0);
    through(0);
    list.add(forward, 1);
    through(1);
  }
  repeat(stage, [&](auto) { list.add(inputs, 0), list.add(inputs, 1); });
  repeat(rest, [&](auto) { list.add(inputs, 0), list.add(weights, 0); });
  list.add_all_weights(1);
  list.add_all_weights(0);
  std::vector<Turn> turns = list.take();
  std::erase_if(turns, [&](const Turn& turn) { return turn.micro_batch >= micro_batches; });
  return turns;
}

// Pipeline Parallelism with Controllable Memory (arXiv 2405.15362): a block of turns that comes
// again every six, where in it those of a micro-batch have their place; weights go where nothing
// else is. What is written here is the block as its authors repeat it (github.com/sail-sg/
// zero-bubble-pipeline-parallelism @064369d, zbv_greedy.py), without moving turns of the first and
// the last micro-batches to where something is free.
struct TurnBlock {
  std::int64_t forward, forward_back, inputs_back, inputs;
};
TurnBlock block_of(const PipelineParallel& p, std::int64_t stage) {
  const std::int64_t n = p.size;
  if (p.schedule == PipelineSchedule::v_half) {
    const std::int64_t gap = n % 2 == 0 ? 3 : 0;
    return {2 * stage, 3 * n - stage - 2, 3 * n + gap + 2 * stage - 1, 6 * n + gap - stage - 2};
  }
  const std::int64_t gap = n % 3 == 0 ? 2 : 0;
  return {stage, 2 * n - stage - 1, 2 * n + gap + stage, 4 * n + gap - stage - 1};
}

std::vector<Turn> repeated_block(const PipelineParallel& p, std::int64_t stage,
                                 std::int64_t micro_batches) {
  constexpr std::int64_t every = 6;
  struct Timed {
    std::int64_t time;
    Pass pass;
    std::int64_t piece;
  };
  const TurnBlock block = block_of(p, stage);
  std::vector<Timed> timed;
  for (std::int64_t i = 0; i < micro_batches; ++i)
    for (const Timed& each :
         {Timed{block.forward, Pass::forward, 0}, Timed{block.forward_back, Pass::forward, 1},
          Timed{block.inputs_back, Pass::inputs, 1}, Timed{block.inputs, Pass::inputs, 0}})
      timed.push_back({each.time + every * i, each.pass, each.piece});
  std::sort(timed.begin(), timed.end(),
            [](const Timed& a, const Timed& b) { return a.time < b.time; });
  TurnList list;
  std::int64_t now = 0;
  for (const Timed& each : timed) {
    for (; now < each.time; ++now) list.add_weights();
    list.add(each.pass, each.piece);
    ++now;
  }
  repeat(2 * micro_batches, [&](auto) { list.add_weights(); });
  return list.take();
}

// DeepSeek-V3 (arXiv 2412.19437) as in github.com/deepseek-ai/DualPipe @bb214e8, dualpipe.py, and
// its half of ScheduleDualPipeV in PyTorch. The first piece of a stage is the one that
// micro-batches reach earlier.
std::vector<Turn> dual_turns(const PipelineParallel& p, std::int64_t stage,
                             std::int64_t micro_batches) {
  using enum Pass;
  constexpr std::int64_t near = 0, far = 1;
  const bool both = p.way() == PipelineWay::both_ways;
  // Stages from an end to this one, and on to where the two ways meet, or the way turns.
  const std::int64_t inner = 1 + (both ? std::min(stage, p.size - 1 - stage) : stage);
  const std::int64_t outer = (both ? p.size / 2 : p.size) - inner;
  const std::int64_t passes = p.micro_batches_of_piece(micro_batches);
  TurnList list;
  repeat(2 * outer, [&](auto) { list.add(forward, near); });
  repeat(inner, [&](auto) { list.add(forward, near), list.add(forward, far); });
  repeat(outer, [&](auto) {
    list.add(inputs, far);
    list.add_weights();
    list.add(forward, far);
  });
  repeat(passes - 2 * outer - inner, [&](std::int64_t i) {
    if (i == 0 && outer == 0)
      list.add(forward, near), list.add(backward, far);
    else
      list.add_pair(near, far);
    list.add_pair(far, near);
  });
  repeat(outer, [&](auto) { list.add(backward, far), list.add_pair(far, near); });
  // The second half of these leaves weights for where the stage waits.
  repeat(2 * inner,
         [&](std::int64_t i) { list.add(i < inner ? backward : inputs, i % 2 == 0 ? far : near); });
  repeat(outer, [&](auto) { list.add_weights(), list.add(inputs, near); });
  repeat(inner, [&](auto) { list.add_weights(); });
  return list.take();
}

}  // namespace

Turn turn_round(const PipelineParallel& p, std::int64_t number, Pass pass) {
  const std::int64_t round = p.pieces();
  const std::int64_t piece = number % round / p.size;
  return {pass, goes_back(pass) ? p.virtual_stages - 1 - piece : piece,
          number / round * p.size + number % p.size};
}

std::vector<Turn> split_turns(const PipelineParallel& p, std::int64_t stage,
                              std::int64_t micro_batches) {
  switch (p.schedule) {
    case PipelineSchedule::zbv:
      return zero_bubble_v(p, stage, micro_batches);
    case PipelineSchedule::v_half:
    case PipelineSchedule::v_min:
      return repeated_block(p, stage, micro_batches);
    case PipelineSchedule::dualpipe:
    case PipelineSchedule::dualpipe_v:
      return dual_turns(p, stage, micro_batches);
    default:
      return first_half(p, stage, micro_batches);
  }
}

}  // namespace stepsim
