#include "workloads/model/mixers.hpp"

#include <algorithm>

namespace stepsim {
namespace {

// Returns the work for each channel and number of its state: decay and input, the sum, and what is
// read out. The backward pass runs forward once more, and finds two gradients.
MixerFlops scan_flops(double channels, double state) {
  const double forward = 2 * 3 * channels * state;
  return {.forward = forward, .backward = 3 * forward};
}

// Products of state-spaces/mamba, ssd_combined.py: each token with all of its chunk for a group (C
// with B), with those before it in the chunk for a head, into the state and out of it.
MixerFlops state_space_flops(const Mixer& m) {
  const double chunk = static_cast<double>(m.chunk), channels = static_cast<double>(m.channels());
  const double in_state = 2 * channels * static_cast<double>(m.state);
  const double in_chunk = 2 * chunk / 2 * channels;
  const double of_groups = 2 * chunk * static_cast<double>(m.groups * m.state);
  return {.forward = 2 * in_state + in_chunk + of_groups,
          // Again: states and C with B. Gradients: of states, inputs, B and C; of inputs, of C with
          // B, and of decays inside the chunk; and through C with B to both.
          .backward = 5 * in_state + 3 * in_chunk + 3 * of_groups};
}

// Products of flash-linear-attention, ops/gated_delta_rule: forward keys with keys, two products
// with the inverse, queries with keys and scores with values in the chunk; the state read for keys
// and for queries, and written. Backward both products with the inverse and the state again, then
// gradients.
MixerFlops delta_flops(const Mixer& m) {
  const double chunk = static_cast<double>(m.chunk), heads = static_cast<double>(m.heads);
  const double keys = 2 * chunk * heads * static_cast<double>(m.state);
  const double values = 2 * chunk * static_cast<double>(m.channels());
  const double in_state = 2 * static_cast<double>(m.channels() * m.state);
  return {.forward = 3 * keys + 2 * values + 3 * in_state,
          .backward = 10 * keys + 5 * values + 8 * in_state};
}

}  // namespace

MixerFlops mixer_flops(const Mixer& mixer) {
  switch (mixer.kind) {
    case MixerKind::convolution:
      break;
    case MixerKind::mamba:
      return scan_flops(static_cast<double>(mixer.channels()), static_cast<double>(mixer.state));
    case MixerKind::mamba2:
      return state_space_flops(mixer);
    case MixerKind::delta:
      return delta_flops(mixer);
  }
  return {};
}

// Fewer groups than ranks: each has what its heads share with others whole.
double state_bytes(const Mixer& mixer, double ranks) {
  const double channels = static_cast<double>(mixer.channels()) / ranks;
  const double shared = static_cast<double>(mixer.convolved() - mixer.channels()) /
                        std::min(ranks, static_cast<double>(mixer.groups));
  const double recurrent = channels * static_cast<double>(mixer.state);
  return (mixer.wide_state ? bytes_32 : bytes_16) * recurrent +
         bytes_16 * static_cast<double>(mixer.taps - 1) * (channels + shared);
}

}  // namespace stepsim
