// What layers do that mix tokens without attention.
#pragma once

#include "workloads/model/model.hpp"

namespace stepsim {

// Operations of a token beside its matrices and the convolution, as the public kernels count: in
// chunks where they multiply chunks, and what their backward pass makes again counted again.
struct MixerFlops {
  double forward = 0, backward = 0;
};
MixerFlops mixer_flops(const Mixer& mixer);

}  // namespace stepsim
