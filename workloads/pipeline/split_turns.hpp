// The orders of turns in which gradients of weights are made later than those of inputs.
#pragma once

#include "workloads/pipeline/schedule.hpp"

namespace stepsim {

// Returns the turn of a pass through pieces that follow each other round the stages: as many
// micro-batches as there are stages go through a piece before the next piece has its turn.
Turn turn_round(const PipelineParallel& pipeline, std::int64_t number, Pass pass);

std::vector<Turn> split_turns(const PipelineParallel& pipeline, std::int64_t stage,
                              std::int64_t micro_batches);

}  // namespace stepsim
