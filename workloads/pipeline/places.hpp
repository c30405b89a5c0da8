// These say where the pieces of a model are that a micro-batch goes through.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/strategy/pipeline_strategy.hpp"

namespace stepsim {

// Places are numbered in the order in which micro-batches go through them: each is one piece on one
// stage. Where half of them come from the other side, theirs follow behind those of the first half.
std::int64_t stage_of_place(const PipelineParallel& pipeline, std::int64_t place);
// Returns the place of a piece of a stage, which has its pieces in the order of the model.
std::int64_t place_of(const PipelineParallel& pipeline, std::int64_t stage, std::int64_t piece);
// Returns the piece at a place, counted in the order of the model.
std::int64_t piece_at(const PipelineParallel& pipeline, std::int64_t place);
// Returns the next place, or the one before; nothing at the ends of the model.
std::optional<std::int64_t> place_beside(const PipelineParallel& pipeline, std::int64_t place,
                                         bool before);

}  // namespace stepsim
