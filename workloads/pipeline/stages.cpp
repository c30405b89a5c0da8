#include "workloads/pipeline/stages.hpp"

namespace stepsim {

std::vector<std::int64_t> layers_of_pieces(const Model& model, const PipelineParallel& pipeline) {
  if (!pipeline.layers.empty()) return pipeline.layers;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(pipeline.pieces()));
  for (std::int64_t piece = 0; piece < pipeline.pieces(); ++piece)
    layers[static_cast<std::size_t>(piece)] =
        model.layers / pipeline.pieces() + (piece < model.layers % pipeline.pieces() ? 1 : 0);
  return layers;
}

// A head that borrows the embedding's matrix has a copy of its own on another stage.
std::vector<StageShare> share_out(const Model& model, const PipelineParallel& pipeline) {
  const auto stages = pipeline.size > 1 ? static_cast<std::size_t>(pipeline.size) : std::size_t{1};
  std::vector<StageShare> shares(stages, StageShare{model, {}});
  for (std::size_t stage = 0; stage < stages; ++stage) {
    Model& own = shares[stage].model;
    own.layers = 0;
    own.tied_embeddings = false;
    own.part = {{}, stage == 0, stage + 1 == stages};
  }
  std::int64_t place = 0;
  const std::vector<std::int64_t> layers = layers_of_pieces(model, pipeline);
  for (std::size_t piece = 0; piece < layers.size(); ++piece) {
    StageShare& share = shares[piece % stages];
    for (std::int64_t i = 0; i < layers[piece]; ++i) share.model.part.places.push_back(place++);
    share.model.layers += layers[piece];
    share.ends.push_back(share.model.layers);
  }
  return shares;
}

}  // namespace stepsim
