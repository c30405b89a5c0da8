// A part is what a rank has of a model, found once from what a step is made from.
#pragma once

#include "workloads/program/matrices.hpp"

namespace stepsim {

struct TensorSizes {          // elements
  double largest = 0;         // tensor
  double largest_module = 0;  // what is built, or gathered, at once
  double narrow = 0;          // multiplied in a type of their own
  double persistent = 0;      // in tensors that stage 3 does not partition between modules
  double shapes = 0;          // one of each shape of matrices in layers
};

// These are elements on a rank: its share of the model before anything is sharded (experts are
// shared out among expert-parallel ranks first), and the part that its optimizer owns.
struct Shares {
  double whole = 0, shard = 0;
  double trained = 0;  // of `whole`: all but what adapters leave frozen
  double updated = 0;  // of `shard`
};

struct RankPart {
  StepInput input;
  Mesh mesh;
  ModelUnits units;  // visits point into them: a part that has visits stays where it is
  TensorSizes tensors;
  Shares shares;
  std::vector<Matrix> matrices{};  // that the optimizer takes as such
};
// Elements of each tensor that is trained, before anything is sharded.
std::vector<double> trained_tensors(const ModelUnits& units);
RankPart rank_part(const StepInput& input, LayersWith which = LayersWith::own_units);

}  // namespace stepsim
