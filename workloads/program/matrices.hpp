// The matrices of a rank, for optimizers that do not take a tensor number by number.
#pragma once

#include <vector>

#include "workloads/program/visits.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {

// These matrices are equal.
struct Matrix {
  double rows = 0, columns = 0;
  double batch = 1;  // so many in one tensor
  double count = 1;  // of such tensors
  bool experts = false;
  bool of_layers = true;  // else the embedding, or the head

  double elements() const { return rows * columns * batch * count; }
};

// Returns the matrices of the part of a model that a rank has before anything is sharded; with
// adapters these alone.
std::vector<Matrix> matrices_of(const StepInput& input, const Mesh& mesh, const ModelUnits& units);

}  // namespace stepsim
