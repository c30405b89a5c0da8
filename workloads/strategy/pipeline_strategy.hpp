// Layers may be spread over stages that hand micro-batches on to each other.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stepsim {

// A schedule says in which order a stage runs its micro-batches forward and backward.
enum class PipelineSchedule : std::uint8_t {
  one_forward_one_backward,  // as few micro-batches under way as the stages behind need
  gpipe,                     // all forward, then all backward
  interleaved,               // the first, over several pieces of the model on each rank
  // Gradients of weights have turns of their own, which fill what would be waiting.
  zb_h1,       // like the first, or interleaved; as many micro-batches under way on every stage
  zbv,         // pieces go down the stages and back up: nothing waits where all turns are as long
  v_half,      // the same with half of the memory
  v_min,       // and with a third
  dualpipe,    // micro-batches come in at both ends: each stage has a piece for each way
  dualpipe_v,  // half of that, whose pieces go down and back up
};
inline constexpr std::array<std::string_view, 9> pipeline_schedule_names{
    "1f1b", "gpipe", "interleaved", "zb_h1", "zbv", "v_half", "v_min", "dualpipe", "dualpipe_v"};
constexpr std::string_view to_text(PipelineSchedule schedule) {
  return pipeline_schedule_names[static_cast<std::size_t>(schedule)];
}
constexpr bool splits_backward(PipelineSchedule schedule) {
  return schedule >= PipelineSchedule::zb_h1;
}
// A turn forward and one backward may run together.
constexpr bool pairs_turns(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::interleaved || schedule >= PipelineSchedule::dualpipe;
}

// A way says how a micro-batch goes over the stages.
enum class PipelineWay : std::uint8_t {
  round,  // from the last one to the first again
  there_and_back,
  both_ways,  // half of the micro-batches the one way, half the other
};
constexpr PipelineWay way_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::zbv:
    case PipelineSchedule::v_half:
    case PipelineSchedule::v_min:
    case PipelineSchedule::dualpipe_v:
      return PipelineWay::there_and_back;
    case PipelineSchedule::dualpipe:
      return PipelineWay::both_ways;
    default:
      return PipelineWay::round;
  }
}

struct PipelineParallel {
  std::int64_t size = 1;  // stages
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t virtual_stages = 1;   // pieces of the model that each rank has, interleaved
  std::vector<std::int64_t> layers;  // of each piece in the model's order; empty: all alike

  // pieces() counts those of the model, pieces_of_stage() those that a stage has of it: from both
  // sides all of it is there twice.
  std::int64_t pieces() const { return size * virtual_stages; }
  std::int64_t pieces_of_stage() const {
    return way() == PipelineWay::both_ways ? 2 : virtual_stages;
  }
  PipelineWay way() const { return way_of(schedule); }
  // That each piece of a stage runs.
  std::int64_t micro_batches_of_piece(std::int64_t micro_batches) const {
    return way() == PipelineWay::both_ways ? micro_batches / 2 : micro_batches;
  }

  friend bool operator==(const PipelineParallel&, const PipelineParallel&) = default;
};

}  // namespace stepsim
