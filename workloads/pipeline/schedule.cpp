#include "workloads/pipeline/schedule.hpp"

#include <algorithm>

#include "workloads/pipeline/split_turns.hpp"
#include "workloads/pipeline/stages.hpp"

namespace stepsim {
namespace {

using Kind = StageAct::Kind;

// Passes forward before the first one backward.
std::int64_t first_forward(const PipelineParallel& p, std::int64_t stage, std::int64_t passes) {
  switch (p.schedule) {
    case PipelineSchedule::gpipe:
      return passes;
    case PipelineSchedule::one_forward_one_backward:
      return std::min(passes, p.size - stage - 1);
    case PipelineSchedule::interleaved:
      return std::min(passes, 2 * (p.size - stage - 1) + (p.virtual_stages - 1) * p.size);
    default:
      break;
  }
  return passes;
}

struct Writer {
  const PipelineParallel& pipeline;
  std::int64_t stage;
  std::vector<StageAct> acts{};

  bool add(Kind kind, const Turn& turn) {
    if (kind == Kind::expect && !input_of(pipeline, stage, turn)) return false;
    if (kind == Kind::send && !output_of(pipeline, stage, turn)) return false;
    acts.push_back({kind, turn});
    return true;
  }
};

// One message after the other; two at once where a pass forward and one backward follow each other,
// which are the neighbour's two as well.
void write_stopping(Writer& writer, const std::vector<Turn>& turns) {
  if (writer.add(Kind::expect, turns.front())) writer.add(Kind::settle, turns.front());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    writer.add(Kind::run, turns[i]);
    bool open = writer.add(Kind::send, turns[i]);
    const bool ends = i + 1 == turns.size();
    const bool crosses = !ends && goes_back(turns[i + 1].pass) != goes_back(turns[i].pass);
    if (open && !crosses) writer.add(Kind::settle, turns[i]), open = false;
    if (!ends) open = writer.add(Kind::expect, turns[i + 1]) || open;
    if (open) writer.add(Kind::settle, turns[i]);
  }
}

void write_plainly(Writer& writer, const std::vector<Turn>& turns) {
  for (const Turn& turn : turns)
    for (const Kind kind : {Kind::expect, Kind::run, Kind::send}) writer.add(kind, turn);
}

void write_running_ahead(Writer& writer, const std::vector<Turn>& turns) {
  const auto next_like = [&](std::size_t from, bool back) {
    while (from < turns.size() && goes_back(turns[from].pass) != back) ++from;
    return from;
  };
  const std::size_t first_back = next_like(0, true);
  writer.add(Kind::expect, turns.front());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (i + 1 == first_back) writer.add(Kind::expect, turns[first_back]);
    writer.add(Kind::run, turns[i]);
    const auto hand_on = [&](std::size_t turn) {
      writer.add(Kind::send, turns[turn]);
      const std::size_t next = next_like(i + 1, goes_back(turns[turn].pass));
      if (next < turns.size()) writer.add(Kind::expect, turns[next]);
    };
    const std::size_t first = i;
    if (turns[i].with_next) writer.acts.back().beside = turns[++i];
    for (std::size_t turn = first; turn <= i; ++turn) hand_on(turn);
  }
}

// Asks for what the next turns need while one runs; turns of weights need nothing.
void write_one_ahead(Writer& writer, const std::vector<Turn>& turns) {
  std::size_t asked = 0;
  const auto ask_for_next = [&] {
    while (asked < turns.size() && turns[asked].pass == Pass::weights) ++asked;
    for (bool on = true; on && asked < turns.size(); ++asked) {
      writer.add(Kind::expect, turns[asked]);
      on = turns[asked].with_next;
    }
  };
  ask_for_next();
  for (std::size_t i = 0, end = 0; i < turns.size(); i = end) {
    end = i + (turns[i].with_next ? 2 : 1);
    if (asked <= end) ask_for_next();
    writer.add(Kind::run, turns[i]);
    if (turns[i].with_next) writer.acts.back().beside = turns[i + 1];
    for (std::size_t turn = i; turn < end; ++turn) writer.add(Kind::send, turns[turn]);
  }
}

}  // namespace

std::vector<Turn> turns_of(const PipelineParallel& p, std::int64_t stage,
                           std::int64_t micro_batches, bool paired) {
  if (splits_backward(p.schedule)) return split_turns(p, stage, micro_batches);
  const std::int64_t passes = micro_batches * p.virtual_stages;
  const std::int64_t ahead = std::min(passes, first_forward(p, stage, passes) + (paired ? 1 : 0));
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(2 * passes));
  for (std::int64_t pass = 0; pass < passes + ahead; ++pass) {
    if (pass < passes) turns.push_back(turn_round(p, pass, Pass::forward));
    if (pass < ahead) continue;
    if (paired && pass < passes) turns.back().with_next = true;
    turns.push_back(turn_round(p, pass - ahead, Pass::backward));
  }
  return turns;
}

std::int64_t source_of(const PipelineParallel& p, const Message& message) {
  return stage_of_place(p, message.from);
}

std::int64_t target_of(const PipelineParallel& p, const Message& message) {
  return stage_of_place(p, message.from + (message.backward ? -1 : 1));
}

bool goes_on(const PipelineParallel& p, const Message& message) {
  const bool back = p.way() != PipelineWay::round && message.from >= p.size;
  return message.backward == back;
}

std::optional<Message> input_of(const PipelineParallel& p, std::int64_t stage, const Turn& turn) {
  if (turn.pass == Pass::weights) return std::nullopt;
  const bool back = goes_back(turn.pass);
  const auto from = place_beside(p, place_of(p, stage, turn.piece), !back);
  if (!from) return std::nullopt;
  return Message{back, *from, turn.micro_batch};
}

std::optional<Message> output_of(const PipelineParallel& p, std::int64_t stage, const Turn& turn) {
  if (turn.pass == Pass::weights) return std::nullopt;
  const std::int64_t own = place_of(p, stage, turn.piece);
  const bool back = goes_back(turn.pass);
  if (!place_beside(p, own, back)) return std::nullopt;
  return Message{back, own, turn.micro_batch};
}

std::vector<StageAct> acts_of(const PipelineParallel& p, std::int64_t stage,
                              std::int64_t micro_batches, const StageHabits& habits) {
  const std::vector<Turn> turns = turns_of(p, stage, micro_batches, habits.paired);
  Writer writer{p, stage};
  if (splits_backward(p.schedule)) {
    write_one_ahead(writer, turns);
  } else if (p.schedule == PipelineSchedule::interleaved) {
    write_running_ahead(writer, turns);
  } else if (habits.stops) {
    write_stopping(writer, turns);
  } else {
    write_plainly(writer, turns);
  }
  return std::move(writer.acts);
}

std::vector<StageAct> scoring_acts_of(const PipelineParallel& p, std::int64_t stage,
                                      std::int64_t micro_batches, std::int64_t sweep, bool stops) {
  std::vector<Turn> turns;
  for (std::int64_t pass = 0; pass < micro_batches * p.virtual_stages; ++pass) {
    turns.push_back(turn_round(p, pass, Pass::scoring));
    turns.back().micro_batch += (sweep + 1) * micro_batches;
  }
  Writer writer{p, stage};
  if (stops)
    write_stopping(writer, turns);
  else
    write_plainly(writer, turns);
  return std::move(writer.acts);
}

}  // namespace stepsim
