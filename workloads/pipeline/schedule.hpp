// A schedule says in which order a stage runs its micro-batches, and what it tells its neighbours
// in between: as data, so that it can be counted and tested without a simulator.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/strategy/pipeline_strategy.hpp"

namespace stepsim {

// A pass is what a turn makes. A backward pass makes gradients of inputs, which other stages wait
// for, and of weights, which nobody does: these can have a turn of their own. A pass that scores
// goes forward, and nothing is kept of it.
enum class Pass : std::uint8_t { forward, backward, inputs, weights, scoring };
constexpr bool goes_back(Pass pass) {
  return pass != Pass::forward && pass != Pass::scoring;
}

// A turn takes one micro-batch through one piece of a stage.
struct Turn {
  Pass pass = Pass::forward;
  std::int64_t piece = 0;        // of the stage's own
  std::int64_t micro_batch = 0;  // of those that go through it; scoring: counted on behind those
  bool with_next = false;        // what both make is sent when both are over

  friend bool operator==(const Turn&, const Turn&) = default;
};
// Returns the turns of a stage. `paired`: of interleaved stages one pass more goes forward first,
// so that of a forward and a backward turn that follow each other neither waits for the other, and
// both run together.
std::vector<Turn> turns_of(const PipelineParallel& pipeline, std::int64_t stage,
                           std::int64_t micro_batches, bool paired = false);

// A message is activations on their way to the next place, or their gradients to the one before.
struct Message {
  bool backward = false;
  std::int64_t from = 0;  // place that sends it
  std::int64_t micro_batch = 0;

  friend auto operator<=>(const Message&, const Message&) = default;
};
// These return what a turn needs before it can begin, and what it makes; nothing at the ends of the
// model.
std::optional<Message> input_of(const PipelineParallel& pipeline, std::int64_t stage,
                                const Turn& turn);
std::optional<Message> output_of(const PipelineParallel& pipeline, std::int64_t stage,
                                 const Turn& turn);
// These say between which stages it travels; where the way turns it stays.
std::int64_t source_of(const PipelineParallel& pipeline, const Message& message);
std::int64_t target_of(const PipelineParallel& pipeline, const Message& message);
// Returns whether the message goes from a stage to the next one, or else to the one before.
bool goes_on(const PipelineParallel& pipeline, const Message& message);

// An act is what the host of a stage does, one after the other.
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
// Megatron's does under 1f1b and gpipe. Otherwise it asks for the input of a turn before that turn,
// interleaved one turn of the same direction earlier, with split backward passes one turn earlier,
// so that it comes meanwhile.
struct StageHabits {
  bool stops = false;
  bool paired = false;  // of interleaved stages: turns forward and backward run together
};
std::vector<StageAct> acts_of(const PipelineParallel& pipeline, std::int64_t stage,
                              std::int64_t micro_batches, const StageHabits& habits);
// Takes all micro-batches once forward; `sweep` counts such passes from 0.
std::vector<StageAct> scoring_acts_of(const PipelineParallel& pipeline, std::int64_t stage,
                                      std::int64_t micro_batches, std::int64_t sweep, bool stops);

}  // namespace stepsim
