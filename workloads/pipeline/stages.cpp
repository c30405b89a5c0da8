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
  const std::vector<std::int64_t> layers = layers_of_pieces(model, pipeline);
  std::vector<std::int64_t> first{0};  // [piece of the model]: its first layer
  for (const std::int64_t count : layers) first.push_back(first.back() + count);
  std::vector<StageShare> shares;
  for (std::int64_t stage = 0; stage < pipeline.size; ++stage) {
    StageShare& share = shares.emplace_back(StageShare{model, {}});
    Model& own = share.model;
    own.layers = 0;
    own.part = {{}, false, false};
    for (std::int64_t mine = 0; mine < pipeline.pieces_of_stage(); ++mine) {
      const std::int64_t piece = piece_at(pipeline, place_of(pipeline, stage, mine));
      const auto number = static_cast<std::size_t>(piece);
      for (std::int64_t layer = first[number]; layer < first[number + 1]; ++layer)
        own.part.places.push_back(layer);
      own.layers += layers[number];
      share.ends.push_back(own.layers);
      own.part.embeds = own.part.embeds || piece == 0;
      own.part.predicts = own.part.predicts || piece + 1 == pipeline.pieces();
    }
    own.tied_embeddings = model.tied_embeddings && own.part.embeds && own.part.predicts;
  }
  return shares;
}

namespace {

bool goes_round(const PipelineParallel& p) {
  return p.way() == PipelineWay::round;
}

}  // namespace

std::int64_t stage_of_place(const PipelineParallel& p, std::int64_t place) {
  if (goes_round(p)) return place % p.size;
  return place < p.size ? place : 2 * p.size - 1 - place;
}

std::int64_t place_of(const PipelineParallel& p, std::int64_t stage, std::int64_t piece) {
  if (goes_round(p)) return piece * p.size + stage;
  const bool crosses = p.way() == PipelineWay::both_ways && stage >= p.size / 2;
  const bool there = (piece == 0) != crosses;
  return there ? stage : 2 * p.size - 1 - stage;
}

std::int64_t piece_at(const PipelineParallel& p, std::int64_t place) {
  return p.way() == PipelineWay::both_ways ? place % p.size : place;
}

std::optional<std::int64_t> place_beside(const PipelineParallel& p, std::int64_t place,
                                         bool before) {
  const std::int64_t piece = piece_at(p, place) + (before ? -1 : 1);
  if (piece < 0 || piece >= p.pieces()) return std::nullopt;
  return place + (before ? -1 : 1);
}

}  // namespace stepsim
