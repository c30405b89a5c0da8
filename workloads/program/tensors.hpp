// Sizes of a model's tensors and modules, as a rank holds them.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

struct TensorSizes {          // elements
  double largest = 0;         // tensor
  double largest_module = 0;  // what is built, or gathered, at once
  double persistent = 0;      // in tensors that stage 3 does not partition between modules
};
TensorSizes tensors_of(const StepInput& input);

}  // namespace stepsim
