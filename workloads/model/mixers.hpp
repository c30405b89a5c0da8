// Mixers are layers that mix tokens without attention.
#pragma once

#include "workloads/model/model.hpp"

namespace stepsim {

// These count the operations of a token beside its matrices and the convolution, as the public
// kernels do: in chunks where they multiply chunks, and what their backward pass makes again
// counted again.
struct MixerFlops {
  double forward = 0, backward = 0;
};
MixerFlops mixer_flops(const Mixer& mixer);

// Returns the bytes that a layer has to remember of a sequence however long that is, on a rank of
// so many that share its heads: the state of each channel, and what the convolution still sees.
double state_bytes(const Mixer& mixer, double ranks);

}  // namespace stepsim
