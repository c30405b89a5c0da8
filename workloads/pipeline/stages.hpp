// This cuts a model into pipeline stages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/model/model.hpp"
#include "workloads/strategy/pipeline_strategy.hpp"

namespace stepsim {

// Returns the layers of each piece in the order of the model. Stages take turns: piece 0 is the
// first stage's, piece 1 the second's, and behind the last stage the first one has another.
std::vector<std::int64_t> layers_of_pieces(const Model& model, const PipelineParallel& pipeline);

// A share is what the ranks of a stage have, and where in it their pieces end.
struct StageShare {
  Model model;                     // its layers piece by piece
  std::vector<std::int64_t> ends;  // [piece]: own layers up to its end
};
std::vector<StageShare> share_out(const Model& model, const PipelineParallel& pipeline);

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
