// These heads make something else than words of the vocabulary, and this stands before the head of
// an encoder.
#pragma once

#include <vector>

#include "workloads/layers/units.hpp"

namespace stepsim {

// Returns the matrix that the head of an encoder reads, with its norm; nothing for others.
std::vector<Unit> units_before_head(const Model& model, const Stack& stack,
                                    const Strategy& strategy, const Job& job, double tokens);
// Returns a head of labels with its loss, or what compares texts that have no head.
std::vector<Unit> task_head_units(const Model& model, const Operators& all,
                                  const Strategy& strategy, const Job& job, double tokens);

}  // namespace stepsim
