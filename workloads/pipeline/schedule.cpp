#include "workloads/pipeline/schedule.hpp"

#include <algorithm>

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
  }
  return passes;
}

// As many micro-batches as there are stages go through a piece before the next piece has its turn.
Turn turn_of(const PipelineParallel& p, std::int64_t pass, bool backward) {
  const std::int64_t round = p.pieces();
  const std::int64_t piece = pass % round / p.size;
  return {backward, backward ? p.virtual_stages - 1 - piece : piece,
          pass / round * p.size + pass % p.size};
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
    const bool crosses = !ends && turns[i + 1].backward != turns[i].backward;
    if (open && !crosses) writer.add(Kind::settle, turns[i]), open = false;
    if (!ends) open = writer.add(Kind::expect, turns[i + 1]) || open;
    if (open) writer.add(Kind::settle, turns[i]);
  }
}

void write_running_ahead(Writer& writer, const std::vector<Turn>& turns, bool paired) {
  const auto next_like = [&](std::size_t from, bool backward) {
    while (from < turns.size() && turns[from].backward != backward) ++from;
    return from;
  };
  const std::size_t first_back = next_like(0, true);
  writer.add(Kind::expect, turns.front());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (i + 1 == first_back) writer.add(Kind::expect, turns[first_back]);
    writer.add(Kind::run, turns[i]);
    const auto hand_on = [&](std::size_t turn) {
      writer.add(Kind::send, turns[turn]);
      if (const std::size_t next = next_like(i + 1, turns[turn].backward); next < turns.size())
        writer.add(Kind::expect, turns[next]);
    };
    const std::size_t first = i;
    if (paired && !turns[i].backward && i + 1 < turns.size() && turns[i + 1].backward)
      writer.acts.back().beside = turns[++i];
    for (std::size_t turn = first; turn <= i; ++turn) hand_on(turn);
  }
}

}  // namespace

std::vector<Turn> turns_of(const PipelineParallel& p, std::int64_t stage,
                           std::int64_t micro_batches, bool paired) {
  const std::int64_t passes = micro_batches * p.virtual_stages;
  const std::int64_t ahead = std::min(passes, first_forward(p, stage, passes) + (paired ? 1 : 0));
  std::vector<Turn> turns;
  for (std::int64_t pass = 0; pass < passes + ahead; ++pass) {
    if (pass < passes) turns.push_back(turn_of(p, pass, false));
    if (pass >= ahead) turns.push_back(turn_of(p, pass - ahead, true));
  }
  return turns;
}

std::int64_t stage_of_piece(const PipelineParallel& p, std::int64_t piece) {
  return piece % p.size;
}

std::int64_t target_of(const PipelineParallel& p, const Message& message) {
  return stage_of_piece(p, message.from + (message.backward ? -1 : 1));
}

std::optional<Message> input_of(const PipelineParallel& p, std::int64_t stage, const Turn& turn) {
  const std::int64_t from = turn.piece * p.size + stage + (turn.backward ? 1 : -1);
  if (from < 0 || from >= p.pieces()) return std::nullopt;
  return Message{turn.backward, from, turn.micro_batch};
}

std::optional<Message> output_of(const PipelineParallel& p, std::int64_t stage, const Turn& turn) {
  const std::int64_t own = turn.piece * p.size + stage;
  const std::int64_t to = own + (turn.backward ? -1 : 1);
  if (to < 0 || to >= p.pieces()) return std::nullopt;
  return Message{turn.backward, own, turn.micro_batch};
}

std::vector<StageAct> acts_of(const PipelineParallel& p, std::int64_t stage,
                              std::int64_t micro_batches, const StageHabits& habits) {
  const std::vector<Turn> turns = turns_of(p, stage, micro_batches, habits.paired);
  Writer writer{p, stage};
  if (p.schedule == PipelineSchedule::interleaved) {
    write_running_ahead(writer, turns, habits.paired);
  } else if (habits.stops) {
    write_stopping(writer, turns);
  } else {
    for (const Turn& turn : turns)
      for (const Kind kind : {Kind::expect, Kind::run, Kind::send}) writer.add(kind, turn);
  }
  return std::move(writer.acts);
}

}  // namespace stepsim
