// Layers spread over stages that hand micro-batches on to each other.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stepsim {

// In which order a stage runs its micro-batches forward and backward.
enum class PipelineSchedule : std::uint8_t {
  one_forward_one_backward,  // as few micro-batches under way as the stages behind need
  gpipe,                     // all forward, then all backward
  interleaved,               // the first, over several pieces of the model on each rank
};
inline constexpr std::array<std::string_view, 3> pipeline_schedule_names{"1f1b", "gpipe",
                                                                         "interleaved"};

struct PipelineParallel {
  std::int64_t size = 1;  // stages
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t virtual_stages = 1;   // pieces of the model that each rank has, interleaved
  std::vector<std::int64_t> layers;  // of each piece in the model's order; empty: all alike

  std::int64_t pieces() const { return size * virtual_stages; }
};

}  // namespace stepsim
