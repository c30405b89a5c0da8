#include "workloads/pipeline/pipeline.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>

#include "workloads/layers/rank_share.hpp"
#include "workloads/pipeline/stage_program.hpp"
#include "workloads/pipeline/step_traffic.hpp"
#include "workloads/pipeline/turns.hpp"
#include "workloads/sharding/schemes.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

LaneRange lanes_of(const Folded& folded, const Mesh& mesh, Rank stage) {
  const Rank ranks = mesh.in_stage();
  const auto lane = [&](Rank rank) {
    return rank < mesh.ranks ? static_cast<Rank>(folded.lane_of[rank])
                             : static_cast<Rank>(folded.rank_of.size());
  };
  return {lane(stage * ranks), lane((stage + 1) * ranks)};
}

constexpr std::string_view name_of_message(bool gradients, bool to_next) {
  if (gradients) return to_next ? "gradients_to_next_stage" : "gradients_to_previous_stage";
  return to_next ? "activations_to_next_stage" : "activations_to_previous_stage";
}

// Writes the stages in turns, each as far as what it waits for has been written.
template <StagedSchedule S>
class PipelineWriter {
 public:
  PipelineWriter(const RankPart& whole, const Traffic& traffic,
                 const std::vector<StageShare>& shares, Written written)
      : input_(whole.input),
        pipeline_(input_.strategy.pipeline_parallel),
        builder_(traffic, written, input_.job.budget) {
    const StepInput& input = whole.input;
    for (std::size_t stage = 0; stage < shares.size(); ++stage) {
      const LaneRange lanes = lanes_of(traffic.folded, whole.mesh, static_cast<Rank>(stage));
      builder_.select(lanes);
      stages_.emplace_back(input, shares[stage], builder_, lanes);
    }
  }

  OpGraph write() {
    score();
    const StageHabits habits{.stops = input_.stack.stops_for_stages,
                             .paired = input_.strategy.experts.overlaps};
    run_turns([&](std::int64_t stage) {
      return acts_of(pipeline_, stage, input_.micro_batches(), habits);
    });
    for (Stage& stage : stages_) {
      take_over(stage);
      stage.program.finish_backward();
    }
    if (pipeline_.way() == PipelineWay::both_ways) sum_copies();
    if (input_.model.tied_embeddings && pipeline_.way() == PipelineWay::round) sum_tied();
    finish();
    return builder_.take();
  }

 private:
  struct Stage {
    Stage(const StepInput& input, const StageShare& share, ProgramBuilder& builder,
          LaneRange lanes_of_stage)
        : lanes(lanes_of_stage), program(input, share, builder) {}

    LaneRange lanes;
    StageProgram<S> program;
    std::vector<Message> open;  // asked for or sent since the host last waited
  };
  // These are known of a message before it can be written: both ends have to be ready for it.
  struct Ends {
    std::optional<Mark> source, made;  // the host of the sender is there; and the data
    std::optional<Mark> target;
    std::optional<ProgramBuilder::Sent> sent;
  };

  void take_over(Stage& stage) { builder_.select(stage.lanes); }
  Stage& stage_of(std::int64_t number) { return stages_[static_cast<std::size_t>(number)]; }
  double bytes() const { return message_bytes(input_); }

  // Passes without gradients go over all micro-batches before anything else: who asked for the
  // scores waits until the last stage has told them.
  void score() {
    const Job& job = input_.job;
    const std::int64_t sweeps =
        job.scoring_passes + job.estimating_passes() + job.reference_passes();
    for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) {
      run_turns([&](std::int64_t stage) {
        return scoring_acts_of(pipeline_, stage, input_.micro_batches(), sweep,
                               input_.stack.stops_for_stages);
      });
      for (Stage& stage : stages_) launch(stage, Phase::forward, "scores");
      const double scores = 4 * input_.job.slots() * static_cast<double>(input_.micro_batches());
      builder_.select(builder_.all());
      const Mark told = builder_.collective(
          index(Plan::signal),
          common(Stream::reduce, Phase::forward, Cause::stage_transfer, scores, "scores"),
          Stream::compute);
      for (Stage& stage : stages_) {
        take_over(stage);
        wait_for(stage.program.writer, told);
      }
    }
  }

  template <class Acts>
  void run_turns(const Acts& acts_of_stage) {
    std::vector<std::vector<StageAct>> acts;
    for (std::size_t number = 0; number < stages_.size(); ++number)
      acts.push_back(acts_of_stage(static_cast<std::int64_t>(number)));
    take_turns(acts,
               [this](std::int64_t number, const StageAct& act) { return done(number, act); });
  }

  // False: another stage has to go on first.
  bool done(std::int64_t number, const StageAct& act) {
    Stage& stage = stage_of(number);
    take_over(stage);
    switch (act.kind) {
      case StageAct::Kind::expect:
        expect(stage, *input_of(pipeline_, number, act.turn));
        return true;
      case StageAct::Kind::send:
        send(stage, *output_of(pipeline_, number, act.turn));
        return true;
      case StageAct::Kind::settle:
        return settle(number, stage);
      case StageAct::Kind::run:
        return run(number, stage, act);
    }
    return true;
  }

  Mark post(Stage& stage, const Message& message, std::string_view name) {
    StepWriter& writer = stage.program.writer;
    writer.context = {message.backward ? Phase::backward : Phase::forward, -1,
                      static_cast<std::int32_t>(message.micro_batch)};
    stage.open.push_back(message);
    return writer.host(writer.scaled(input_.stack.host.collective_launch.value),
                       Cause::stage_transfer, name);
  }

  // Returns whether the next place is on this stage: then it has what it needs already.
  bool stays(const Message& message) const {
    return source_of(pipeline_, message) == target_of(pipeline_, message);
  }

  void expect(Stage& stage, const Message& message) {
    if (stays(message)) return;
    const Mark posted = post(stage, message, "expect");
    stage.program.writer.allocate(posted, Held::stage_buffers, bytes());
    Ends& ends = messages_[message];
    ends.target = posted;
    deliver(message, ends);
    take_over(stage);
  }

  void send(Stage& stage, const Message& message) {
    StepWriter& writer = stage.program.writer;
    const Mark made = writer.compute_ready();
    writer.allocate(made, Held::stage_buffers, bytes());
    Ends& ends = messages_[message];
    if (stays(message)) {
      ends.sent = {made, made};
      return;
    }
    ends.source = post(stage, message, "send");
    ends.made = made;
    deliver(message, ends);
    take_over(stage);
  }

  // The message leaves when both ends are ready, behind the one before on the same way.
  void deliver(const Message& message, Ends& ends) {
    if (!ends.source || !ends.target) return;
    const std::int64_t from = source_of(pipeline_, message);
    const bool on = goes_on(pipeline_, message);
    Stage& source = stage_of(from);
    Stage& target = stage_of(target_of(pipeline_, message));
    Op op{.kind = OpKind::collective,
          .stream = Stream::stages,
          .phase = message.backward ? Phase::backward : Phase::forward,
          .cause = Cause::stage_transfer,
          .layer = -1,
          .micro_batch = static_cast<std::int32_t>(message.micro_batch),
          .name = builder_.graph().name(name_of_message(message.backward, on))};
    op.bytes = {bytes()};
    take_over(source);
    // If the way turns back, each place sends over a way of its own.
    const bool turns = pipeline_.way() != PipelineWay::round;
    std::optional<Mark>& before = sent_before_[{turns ? message.from : from, message.backward}];
    ends.sent =
        builder_.send(index(on ? Plan::to_next_stage : Plan::to_previous_stage), op, target.lanes,
                      {*ends.source, *ends.made, before.value_or(*ends.source)}, {*ends.target});
    before = ends.sent->at_source;
    source.program.writer.release(ends.sent->at_source, Held::stage_buffers, bytes());
  }

  // The device is drained as well, and nothing runs on it meanwhile.
  bool settle(std::int64_t number, Stage& stage) {
    for (const Message& message : stage.open)
      if (!messages_[message].sent) return false;
    StepWriter& writer = stage.program.writer;
    for (const Message& message : stage.open) {
      const auto [at_source, at_target] = *messages_[message].sent;
      const bool mine = source_of(pipeline_, message) == number;
      wait_for(writer, mine ? at_source : at_target);
      writer.host({0}, Cause::stage_transfer, "arrived", {mine ? at_source : at_target});
    }
    writer.drain(writer.scaled(input_.stack.host.sync.value), Cause::stage_transfer, "synchronize");
    stage.open.clear();
    return true;
  }

  // Makes the stage wait: until then it has nothing to compute.
  static void wait_for(StepWriter& writer, Mark arrived) {
    writer.stream_after(Stream::compute, arrived, Cause::pipeline_bubble);
  }

  const Ends* ends_of(std::int64_t number, const Turn& turn) {
    const std::optional<Message> message = input_of(pipeline_, number, turn);
    return message ? &messages_[*message] : nullptr;
  }

  bool run(std::int64_t number, Stage& stage, const StageAct& act) {
    std::vector<Turn> turns{act.turn};
    if (act.beside) turns.push_back(*act.beside);
    std::vector<const Ends*> inputs;
    for (const Turn& turn : turns)
      if (inputs.push_back(ends_of(number, turn)); inputs.back() && !inputs.back()->sent)
        return false;
    StepWriter& writer = stage.program.writer;
    for (const Ends* ends : inputs) {
      if (ends == nullptr || !ends->target) continue;
      writer.stream_after(Stream::compute, *ends->target, Cause::launch);
      wait_for(writer, ends->sent->at_target);
    }
    const std::vector<Mark> begun = stage.program.run(turns);
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (inputs[i] != nullptr) writer.release(begun[i], Held::stage_buffers, bytes());
    return true;
  }

  // The host launches what comes next behind all that the device has been given.
  void launch(Stage& stage, Phase phase, std::string_view name) {
    take_over(stage);
    StepWriter& writer = stage.program.writer;
    writer.context = {phase, -1, -1};
    writer.compute_ready();
    const Mark launched =
        writer.host(writer.scaled(input_.stack.host.collective_launch.value), Cause::launch, name);
    writer.stream_after(Stream::compute, launched, Cause::launch);
  }

  Op common(Stream stream, Phase phase, Cause cause, double size, std::string_view name) {
    Op op{.kind = OpKind::collective,
          .stream = stream,
          .phase = phase,
          .cause = cause,
          .name = builder_.graph().name(name)};
    op.bytes = {size};
    return op;
  }

  // The stage of the same pieces on the other side has a part of their gradients as well: each
  // sends the other one its own, of what it updates, and adds what comes.
  void sum_copies() {
    std::vector<Mark> launched, sent;
    const auto bytes_of = [&](const Stage& stage) {
      return gradient_bytes(input_.strategy) * owned_elements(stage.program.rank());
    };
    for (Stage& stage : stages_) {
      launch(stage, Phase::backward, "sum_copies");
      launched.push_back(stage.program.writer.compute_ready());
      stage.program.writer.allocate(launched.back(), Held::stage_buffers, bytes_of(stage));
    }
    for (std::size_t number = 0; number < stages_.size(); ++number) {
      const std::size_t other = stages_.size() - 1 - number;
      take_over(stages_[number]);
      sent.push_back(builder_
                         .send(index(Plan::to_copy),
                               common(Stream::stages, Phase::backward, Cause::gradient_reduce,
                                      bytes_of(stages_[number]), "gradients_to_copy"),
                               stages_[other].lanes, {launched[number]}, {launched[other]})
                         .at_target);
    }
    for (std::size_t number = 0; number < stages_.size(); ++number) {
      Stage& stage = stages_[number];
      take_over(stage);
      StepWriter& writer = stage.program.writer;
      writer.stream_after(Stream::compute, sent[stages_.size() - 1 - number],
                          Cause::gradient_reduce);
      const Mark added = writer.run({{"add_copy", KernelClass::memory, 0, 3 * bytes_of(stage), 1}},
                                    true, Cause::gradient_reduce, "add_copy");
      writer.release(added, Held::stage_buffers, bytes_of(stage));
    }
  }

  // Embedding and head are the same matrix, and have a part of its gradient each.
  void sum_tied() {
    const auto part = static_cast<double>(model_of_rank(input_.model, input_.strategy).vocabulary *
                                          input_.model.hidden);
    for (Stage* stage : {&stages_.front(), &stages_.back()})
      launch(*stage, Phase::backward, "sum_tied_gradients");
    builder_.select(builder_.all());
    const Mark summed =
        builder_.collective(index(Plan::end_stages),
                            common(Stream::stages, Phase::backward, Cause::gradient_reduce,
                                   gradient_bytes(input_.strategy) * part, "sum_tied_gradients"),
                            Stream::compute);
    for (Stage* stage : {&stages_.front(), &stages_.back()}) {
      take_over(*stage);
      wait_for(stage->program.writer, summed);
    }
  }

  // All ranks agree on the norm of all gradients; nobody updates before the last one has its own.
  void finish() {
    for (Stage& stage : stages_) {
      take_over(stage);
      stage.program.find_norm();
      launch(stage, Phase::optimizer, "norm");
    }
    builder_.select(builder_.all());
    const Mark norm = builder_.collective(
        index(Plan::signal), common(Stream::reduce, Phase::optimizer, Cause::optimizer, 4, "norm"),
        Stream::compute);
    for (Stage& stage : stages_) {
      take_over(stage);
      wait_for(stage.program.writer, norm);
      stage.program.finish_step(norm);
    }
  }

  const StepInput& input_;
  PipelineParallel pipeline_;
  ProgramBuilder builder_;
  std::deque<Stage> stages_;
  std::map<Message, Ends> messages_;
  std::map<std::pair<std::int64_t, bool>, std::optional<Mark>> sent_before_;  // by sender, backward
};

}  // namespace

VisitRanges ranges_of(const std::vector<Visit>& visits, const StageShare& share,
                      const OtherPasses& others) {
  const auto before = static_cast<std::size_t>(others.without_gradients);
  const std::size_t sweeps = before + 1 + static_cast<std::size_t>(others.of_reference);
  const auto forward = static_cast<std::size_t>(std::ranges::count_if(
      visits, [](const Visit& visit) { return visit.phase == Phase::forward; }));
  // Passes forward are alike, and come first.
  const auto column_of = [&](std::size_t visit) -> std::size_t {
    if (visit >= forward) return 1;
    const std::size_t sweep = visit / (forward / sweeps);
    if (sweep == before) return 0;
    return sweep < before ? 2 + sweep : 1 + sweep;
  };
  VisitRanges ranges(share.ends.size(), std::vector<VisitRange>(1 + sweeps));
  const auto piece_of = [&](const Visit& visit) {
    std::size_t piece = 0;
    while (piece + 1 < share.ends.size() && visit.layer >= share.ends[piece]) ++piece;
    return piece;
  };
  for (std::size_t i = 0; i < visits.size(); ++i) {
    VisitRange& range = ranges[piece_of(visits[i])][column_of(i)];
    if (range.end == 0) range.first = i;
    range.end = i + 1;
  }
  return ranges;
}

double message_bytes(const StepInput& input) {
  return input.strategy.precision.numbers * slots_between_blocks(input.job, input.strategy) *
         static_cast<double>(input.model.hidden);
}

PipelineRanks pipeline_ranks(const RankPart& rank, Folding folding) {
  const StepInput& input = rank.input;
  PipelineRanks ranks{.traffic = step_traffic(rank, folding), .stages = {}};
  Rank number = 0;
  for (const StageShare& share : share_out(input.model, input.strategy.pipeline_parallel))
    ranks.stages.push_back({lanes_of(ranks.traffic.folded, rank.mesh, number++).first, share.model,
                            resident_of(rank_part({input.cluster, share.model, input.stack,
                                                   input.strategy, input.job}))});
  return ranks;
}

OpGraph write_pipeline(const RankPart& rank, const Traffic& traffic, Written written) {
  const std::vector<StageShare> shares =
      share_out(rank.input.model, rank.input.strategy.pipeline_parallel);
  return with_scheme(rank.input.strategy, [&]<Scheme S>() -> OpGraph {
    if constexpr (StagedSchedule<typename S::Schedule>)
      return PipelineWriter<typename S::Schedule>(rank, traffic, shares, written).write();
    else
      throw std::logic_error("stages of a pipeline cannot be sharded like this");
  });
}

}  // namespace stepsim
