// In which order a stage runs its micro-batches, and what it tells its neighbours in between: as
// data, so that it can be counted and tested without a simulator.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/strategy/pipeline_strategy.hpp"

namespace stepsim {

// One micro-batch through one piece of a stage.
struct Turn {
  bool backward = false;
  std::int64_t piece = 0;  // of the stage's own
  std::int64_t micro_batch = 0;

  friend bool operator==(const Turn&, const Turn&) = default;
};
// `paired`: one pass more goes forward first, so that of a forward and a backward turn that follow
// each other neither waits for the other.
std::vector<Turn> turns_of(const PipelineParallel& pipeline, std::int64_t stage,
                           std::int64_t micro_batches, bool paired = false);

// Activations on their way to the next piece of the model, or their gradients to the one before.
struct Message {
  bool backward = false;
  std::int64_t from = 0;  // piece of the model that sends it
  std::int64_t micro_batch = 0;

  friend auto operator<=>(const Message&, const Message&) = default;
};
// What a turn needs before it can begin, and what it makes; nothing at the ends of the model.
std::optional<Message> input_of(const PipelineParallel& pipeline, std::int64_t stage,
                                const Turn& turn);
std::optional<Message> output_of(const PipelineParallel& pipeline, std::int64_t stage,
                                 const Turn& turn);
std::int64_t stage_of_piece(const PipelineParallel& pipeline, std::int64_t piece);
std::int64_t target_of(const PipelineParallel& pipeline, const Message& message);

// What the host of a stage does, one after the other.
struct StageAct {
  enum class Kind : std::uint8_t {
    expect,  // it asks for a turn's input
    run,     // the turn, when that is there
    send,    // its output
    settle,  // the host waits until all that it asked for and sent has arrived
  } kind{};
  Turn turn;
  std::optional<Turn> beside{};  // a backward turn that is run along with this one

  friend bool operator==(const StageAct&, const StageAct&) = default;
};
// With `stops` the host waits for each message, and for two at once that cross each other, as
// Megatron's does unless stages are interleaved. Otherwise it asks for the input of a turn before
// that turn, and interleaved one turn of the same direction earlier, so that it comes meanwhile.
struct StageHabits {
  bool stops = false;
  bool paired = false;  // of interleaved stages: turns forward and backward run together
};
std::vector<StageAct> acts_of(const PipelineParallel& pipeline, std::int64_t stage,
                              std::int64_t micro_batches, const StageHabits& habits);

}  // namespace stepsim
