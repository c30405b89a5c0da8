#include "workloads/pipeline/places.hpp"

namespace stepsim {
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
