// This writes what one stage of a pipeline does in a turn, whoever shards its parameters.
#pragma once

#include <vector>

#include "workloads/pipeline/pipeline.hpp"
#include "workloads/pipeline/schedule.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/program/activations.hpp"
#include "workloads/program/in_turns.hpp"
#include "workloads/sharding/scheme.hpp"

namespace stepsim {

// A range is the visits of one piece in one direction.
struct VisitRange {
  std::size_t first = 0, end = 0;
};
// These are [piece][forward, back, then each pass that scores].
using VisitRanges = std::vector<std::vector<VisitRange>>;
VisitRanges ranges_of(const std::vector<Visit>& visits, const StageShare& share,
                      const OtherPasses& others);

// The lanes of the stage have to be selected whenever it writes.
template <StagedSchedule S>
class StageProgram {
 public:
  StageProgram(const StepInput& whole, const StageShare& share, ProgramBuilder& builder)
      : whole_layers_(static_cast<std::int16_t>(whole.model.layers)),
        micro_batches_(
            whole.strategy.pipeline_parallel.micro_batches_of_piece(whole.micro_batches())),
        share_(share),
        rank_(rank_part({whole.cluster, share_.model, whole.stack, whole.strategy, whole.job})),
        writer(rank_, builder),
        reference_(rank_.input.job.has_reference() ? rank_.units : ModelUnits{}),
        visits_(visits_of(rank_.units, other_passes(rank_.input.job, reference_))),
        ranges_(ranges_of(visits_, share_, other_passes(rank_.input.job, reference_))),
        schedule_(writer, visits_),
        activations_(writer, visits_) {
    writer.context = {Phase::other, -1, 0};
    writer.host(writer.scaled(rank_.input.stack.host.step.value), Cause::other, "step_overhead");
  }
  StageProgram(const StageProgram&) = delete;
  StageProgram& operator=(const StageProgram&) = delete;

  const StepInput& input() const { return rank_.input; }
  const RankPart& rank() const { return rank_; }

  // Runs one turn, or one forward and one backward together. Returns the first kernel of each: what
  // came from the neighbour is taken over there.
  std::vector<Mark> run(const std::vector<Turn>& turns) {
    std::vector<PassInTurns> passes;
    for (const Turn& turn : turns) {
      const auto [first, end] = ranges_[static_cast<std::size_t>(turn.piece)][column_of(turn)];
      passes.push_back({.next = first, .end = end, .micro_batch = turn.micro_batch});
    }
    // The gradients go first: their tokens travel under the attention of the other one.
    if (passes.size() > 1 && rank_.input.strategy.experts.overlaps)
      run_in_turns(writer, visits_, {&passes[1], &passes[0]}, Around{*this});
    else
      for (std::size_t i = 0; i < turns.size(); ++i) run_alone(passes[i], turns[i].pass);
    std::vector<Mark> begun;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      if (goes_back(turns[i].pass) && turns[i].pass != Pass::weights)
        activations_.end_pass(writer.last_compute());
      begun.push_back(passes[i].begun.value_or(writer.last_compute()));
    }
    writer.context.layer = -1;
    return begun;
  }

  void finish_backward() {
    schedule_.finish_backward(true);
    sum_norms(writer, visits_);
  }
  void find_norm() { schedule_.own_norm(); }
  void finish_step(Mark norm) { schedule_.finish_step(norm); }

 private:
  struct Around {
    StageProgram& program;

    void before(const PassInTurns& pass, std::size_t i, PartOfVisit part = PartOfVisit::all) {
      const Visit& visit = program.visits_[i];
      program.writer.context = {visit.phase, program.whole_layer_of(visit),
                                static_cast<std::int32_t>(pass.micro_batch)};
      if (pass.sent || part == PartOfVisit::weights) return;
      program.schedule_.before(i);
      program.activations_.before(i);
    }
    // Its gradients are there with those of the weights.
    void ran(const PassInTurns& pass, std::size_t i, Mark compute,
             PartOfVisit part = PartOfVisit::all) {
      program.activations_.ran(i, compute, part);
      if (part == PartOfVisit::inputs) return;
      program.schedule_.after(i, pass.micro_batch + 1 == program.micro_batches_);
    }
  };

  // A turn of the weights alone passes by what has none.
  void run_alone(PassInTurns& pass, Pass kind) {
    Around around{*this};
    for (; !pass.over(); ++pass.next) {
      PartOfVisit part = PartOfVisit::all;
      if (kind == Pass::weights && !waits_for_weights(visits_[pass.next])) continue;
      if (kind == Pass::weights) part = PartOfVisit::weights;
      if (kind == Pass::inputs && waits_for_weights(visits_[pass.next])) part = PartOfVisit::inputs;
      around.before(pass, pass.next, part);
      const Mark compute = run_visit(writer, visits_[pass.next], part);
      around.ran(pass, pass.next, compute, part);
      if (!pass.begun) pass.begun = compute;
    }
  }

  // Returns the column of a turn among the ranges of a piece.
  std::size_t column_of(const Turn& turn) const {
    if (turn.pass == Pass::scoring)
      return static_cast<std::size_t>(1 + turn.micro_batch / micro_batches_);
    return goes_back(turn.pass) ? 1 : 0;
  }

  std::int16_t whole_layer_of(const Visit& visit) const {
    if (visit.layer < 0) return visit.layer;
    if (visit.layer >= share_.model.layers) return whole_layers_;
    return static_cast<std::int16_t>(whole_layer(share_.model, visit.layer));
  }

  std::int16_t whole_layers_;
  std::int64_t micro_batches_;  // that each piece runs
  StageShare share_;
  RankPart rank_;

 public:
  StepWriter writer;

 private:
  ModelUnits reference_;
  std::vector<Visit> visits_;
  VisitRanges ranges_;
  S schedule_;
  Activations activations_;
};

}  // namespace stepsim
