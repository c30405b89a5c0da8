// Some optimizers update a matrix as a whole: these say what a rank has of that work, what ranks
// send each other for it, and the products themselves.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Returns the ranks that share one copy of a matrix and its states.
double sharers_of(const RankPart& rank, const Matrix& matrix);
// Returns the share that a rank updates, or whose momentum it keeps whole, of the matrices of this
// kind, or of such a portion of them.
double share_of_matrices(const RankPart& rank, const Matrix& matrix, double portion = 1);
// Returns the share of the elements of a rank's optimizer that are updated so.
double share_in_matrices(const RankPart& rank);
double elements_in_matrices(const RankPart& rank);  // before anything is sharded

// Makes updates of matrices out of their gradients: of all, or of a bucket that has so large a
// share of their elements. `ready`: the gradients are there. The next kernels wait for the end.
void orthogonalise(StepWriter& writer, double portion = 1, std::initializer_list<Mark> ready = {});

// The products and passes for `count` matrices.
std::vector<KernelRow> orthogonal_rows(const Optimizer::Orthogonal& how, const Matrix& matrix,
                                       double count);

}  // namespace stepsim
