// The work that a step's result asks for, whatever was computed twice on the way or for padding.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// These are of one rank and optimizer step: forward, and twice that for both gradients.
struct ModelFlops {
  // This is 6 for each token and parameter that multiplies it; 4 where it is frozen; 2 more where a
  // reference model scores it, too.
  double per_parameter = 0, matrices = 0;
  // Scores and their product with values, of keys that a query sees; in layers without attention
  // what stands in its place.
  double attention = 0;
  // This is the same as if every query saw a whole row, as those count it who write 12 x layers x
  // width x sequence for a token.
  double attention_in_rows = 0;

  double total() const { return matrices + attention; }
};
ModelFlops model_flops(const StepInput& input);

// Elements of the matrices that a token is multiplied with: no tables that are looked up, no norms
// and biases, and of the experts those that it is sent to.
double multiplied_parameters(const Model& model);

}  // namespace stepsim
