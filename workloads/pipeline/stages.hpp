// This cuts a model into pipeline stages.
#pragma once

#include <cstdint>
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

}  // namespace stepsim
