// What one stage of a pipeline does in a turn, whoever shards its parameters.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "workloads/pipeline/pipeline.hpp"
#include "workloads/pipeline/schedule.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/program/activations.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/sharding/scheme.hpp"

namespace stepsim {

// The visits of one piece in one direction.
struct VisitRange {
  std::size_t first = 0, end = 0;
};
// [piece][forward, backward]
using VisitRanges = std::vector<std::array<VisitRange, 2>>;
VisitRanges ranges_of(const std::vector<Visit>& visits, const StageShare& share);

// The lanes of the stage have to be selected whenever it writes.
template <StagedSchedule S>
class StageProgram {
 public:
  StageProgram(const StepInput& whole, const StageShare& share, ProgramBuilder& builder)
      : whole_layers_(static_cast<std::int16_t>(whole.model.layers)),
        share_(share),
        rank_(rank_part({whole.cluster, share_.model, whole.stack, whole.strategy, whole.job})),
        writer(rank_, builder),
        visits_(visits_of(rank_.units)),
        ranges_(ranges_of(visits_, share_)),
        schedule_(writer, visits_),
        activations_(writer, visits_) {
    writer.context = {Phase::other, -1, 0};
    writer.host(writer.scaled(rank_.input.stack.host.step.value), Cause::other, "step_overhead");
  }
  StageProgram(const StageProgram&) = delete;
  StageProgram& operator=(const StageProgram&) = delete;

  const StepInput& input() const { return rank_.input; }

  // Returns the first kernel: what came from the neighbour is taken over there.
  Mark run(const Turn& turn) {
    const auto [first, end] = ranges_[static_cast<std::size_t>(turn.piece)][turn.backward ? 1 : 0];
    const bool last = turn.micro_batch + 1 == rank_.input.job.accumulation;
    Mark begun{};
    for (std::size_t i = first; i < end; ++i) {
      const Visit& visit = visits_[i];
      writer.context = {visit.phase, whole_layer_of(visit),
                        static_cast<std::int16_t>(turn.micro_batch)};
      schedule_.before(i);
      activations_.before(i);
      const Mark compute = run_visit(writer, visit);
      activations_.ran(i, compute);
      schedule_.after(i, last);
      if (i == first) begun = compute;
    }
    if (turn.backward) activations_.end_pass(writer.last_compute());
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
  std::int16_t whole_layer_of(const Visit& visit) const {
    if (visit.layer < 0) return visit.layer;
    if (visit.layer >= share_.model.layers) return whole_layers_;
    return static_cast<std::int16_t>(whole_layer(share_.model, visit.layer));
  }

  std::int16_t whole_layers_;
  StageShare share_;
  RankPart rank_;

 public:
  StepWriter writer;

 private:
  std::vector<Visit> visits_;
  VisitRanges ranges_;
  S schedule_;
  Activations activations_;
};

}  // namespace stepsim
