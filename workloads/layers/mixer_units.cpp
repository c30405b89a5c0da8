// Layers that do not attend. Kernels and bytes are those of the fast paths: causal_conv1d,
// mamba_ssm and flash-linear-attention; without these packages the public model code is many times
// slower.
#include <algorithm>

#include "workloads/layers/layer_writer.hpp"
#include "workloads/model/mixers.hpp"

namespace stepsim {

void LayerWriter::mixer() {
  linear(Role::mixer_in);
  for (const Role role :
       {Role::mixer_gates, Role::mixer_weigh, Role::mixer_put, Role::mixer_forget})
    if (has(role)) linear(role);
  keeps_input(bytes_16 * t() * h());
  units.back().memory.normed = units.back().memory.saved;
  const Mixer& m = *model.mixer;
  switch (m.kind) {
    case MixerKind::convolution:
      short_convolution(m);
      break;
    case MixerKind::mamba:
      selective_scan(m);
      break;
    case MixerKind::mamba2:
      state_space(m);
      break;
    case MixerKind::delta:
      delta_net(m);
      break;
  }
  linear(Role::mixer_out);
  // Mamba-2 makes this input once more in the backward pass of its kernel.
  if (m.kind != MixerKind::mamba2)
    keeps_input(bytes_16 * t() * static_cast<double>(part(Role::mixer_out).in));
}

// A kernel of few operations for each number, or of chunks that are multiplied.
KernelRow LayerWriter::mixing(Operator op, double numbers, double flops, double share) const {
  KernelRow row = count(op, numbers);
  row.flops = flops;
  row.share = share;
  return row;
}

KernelRow LayerWriter::chunks(Operator op, double flops, double share, double states) const {
  const Mixer& m = *model.mixer;
  KernelRow row = mixing(op, t() * static_cast<double>(m.channels()), t() * flops, share);
  row.kind = KernelClass::gemm;
  row.bytes +=
      states * t() / static_cast<double>(m.chunk) * static_cast<double>(m.channels() * m.state);
  return row;
}

void LayerWriter::convolve(double saved) {
  const Part& taps = part(Role::convolution);
  const double channels = static_cast<double>(taps.out), share = stack.mixers.convolution.number();
  const double flops = 2 * t() * static_cast<double>(taps.weights());
  std::vector<double> tensors{static_cast<double>(taps.weights())};
  if (taps.bias) tensors.push_back(channels);
  Unit& result = unit(Role::convolution, taps.name, std::move(tensors),
                      {mixing(Operator::convolution, t() * channels, flops, share)});
  result.backward = {mixing(Operator::convolution_backward, t() * channels, 2 * flops, share)};
  result.memory.saved = saved;
  result.memory.gradient = bytes_16 * t() * channels;
}

// Writes the state with its own tensors: vectors that are no module's but the block's.
Unit& LayerWriter::mix(std::string name, std::vector<KernelRow> rows) {
  std::vector<double> tensors;
  for (const Part& each : parts)
    if (each.role == Role::mixer_constant) tensors.push_back(static_cast<double>(each.weights()));
  return unit(Role::mix, std::move(name), std::move(tensors), std::move(rows));
}

void LayerWriter::gated_norm(double saved) {
  const Part& vector = part(Role::mixer_norm);
  const double numbers = t() * static_cast<double>(model.mixer->channels());
  Unit& result = unit(Role::mixer_norm, vector.name, {static_cast<double>(vector.out)},
                      {count(Operator::gated_norm, numbers)});
  result.backward = {count(Operator::gated_norm_backward, numbers)};
  result.kind = TensorClass::norm;
  result.memory.saved = saved;
  result.memory.gradient = 2 * bytes_16 * numbers;
}

// Writes a short convolution. What comes in is three parts: one is multiplied with another before
// the convolution, and the third with what comes out of it.
void LayerWriter::short_convolution(const Mixer& m) {
  const double numbers = t() * static_cast<double>(m.channels());
  convolve(bytes_16 * (3 + 1 + 1) * numbers);
  Unit& both = units.back();
  both.forward.push_back(count(Operator::convolution_gates, numbers));
  both.backward.push_back(count(Operator::convolution_gates_backward, numbers));
  both.memory.gradient = 3 * bytes_16 * numbers;
}

// Each channel goes through its row token by token; parts of a row run at once. Between channels
// first and tokens first everything is copied.
void LayerWriter::selective_scan(const Mixer& m) {
  const double d = static_cast<double>(m.channels()), state = static_cast<double>(m.state);
  const double numbers = t() * d;
  convolve(2 * bytes_16 * numbers);
  linear(Role::mixer_narrow);
  keeps_input(bytes_16 * numbers);
  for (const Role role : {Role::step_norm, Role::put_norm, Role::read_norm}) norm(role);
  linear(Role::mixer_steps);
  keeps_input(bytes_16 * t() * static_cast<double>(m.step_width));
  // Its arithmetic grows with the state, what it reads does not.
  constexpr double usual_state = 16;
  const double wider = std::max(1.0, state / usual_state);
  const MixerFlops flops = mixer_flops(m);
  Unit& scan = mix("mamba.scan", {count(Operator::scan_copies, numbers),
                                  mixing(Operator::scan, numbers, t() * flops.forward,
                                         stack.mixers.scan_forward.number() / wider)});
  scan.backward = {count(Operator::scan_copies, numbers),
                   mixing(Operator::scan_backward, numbers, t() * flops.backward,
                          stack.mixers.scan_backward.number() / wider)};
  // Copies of what comes in, of time steps and of gates, the result before its gate, and a pair of
  // numbers in 32 bits for each channel's state after so many tokens.
  constexpr double tokens_between = 2048;
  scan.memory.saved = bytes_16 * 4 * numbers + 8 * numbers * state / tokens_between;
  scan.memory.gradient = bytes_16 * 3 * numbers;
  scan.memory.backward = bytes_16 * 3 * numbers;
}

// Writes a state space chunk by chunk: what tokens of one chunk do to each other is a product, and
// so is what they do to its state; only the states go from chunk to chunk. The backward pass makes
// everything again but the result.
void LayerWriter::state_space(const Mixer& m) {
  const double d = static_cast<double>(m.channels());
  const double convolved = static_cast<double>(m.convolved());
  convolve(bytes_16 * t() * static_cast<double>(part(Role::mixer_in).out));
  units.back().backward.insert(units.back().backward.begin(), units.back().forward.front());
  const Operators& all = stack.operators;
  const MixerFlops flops = mixer_flops(m);
  Unit& result = mix("mamba.chunks", {chunks(Operator::state_space, flops.forward,
                                             stack.mixers.state_space_forward.number(),
                                             all[Operator::state_space_states].bytes)});
  result.backward = {chunks(Operator::state_space_backward, flops.backward,
                            stack.mixers.state_space_backward.number(),
                            all[Operator::state_space_states_backward].bytes)};
  result.memory.saved = bytes_16 * t() * d;
  result.memory.gradient = bytes_16 * t() * static_cast<double>(part(Role::mixer_in).out);
  const double states = t() / static_cast<double>(m.chunk) * d * static_cast<double>(m.state);
  result.memory.forward = bytes_16 * t() * convolved + (4 + bytes_16) * states;
  result.memory.backward = bytes_16 * t() * (convolved + 2 * d) + (4 + 2 * bytes_16) * states;
  // If there is no norm, the mixer's own kernel weighs the result.
  if (m.normed) gated_norm(0);
}

// Writes a delta net chunk by chunk as well; within a chunk each token first takes out of the state
// what its key would read, which is a triangular system to solve.
void LayerWriter::delta_net(const Mixer& m) {
  const double d = static_cast<double>(m.channels()), heads = static_cast<double>(m.heads);
  const double convolved = t() * static_cast<double>(m.convolved());
  const double keys = t() * heads * static_cast<double>(m.state);
  // Projected, put together for the convolution unless it comes so, and convolved.
  convolve(bytes_16 * ((m.split ? 2 : 3) * convolved + t() * d));
  if (!m.split) {
    units.back().forward.push_back(count(Operator::delta_join, convolved));
    units.back().backward.push_back(count(Operator::delta_join, convolved));
  }
  const MixerFlops flops = mixer_flops(m);
  std::vector<KernelRow> rows{count(Operator::delta_gates, t() * heads),
                              count(Operator::delta_norms, 2 * keys)};
  if (m.groups < m.heads) rows.push_back(count(Operator::repeat_heads, 2 * keys));
  std::vector<KernelRow> backward = backward_of(rows, stack.operators);
  const Operators& all = stack.operators;
  rows.push_back(chunks(Operator::delta, flops.forward, stack.mixers.delta_forward.number(),
                        all[Operator::delta_states].bytes));
  backward.push_back(chunks(Operator::delta_backward, flops.backward,
                            stack.mixers.delta_backward.number(),
                            all[Operator::delta_states_backward].bytes));
  Unit& result = mix("linear_attn.chunks", std::move(rows));
  result.backward = std::move(backward);
  // Queries and keys of every head, and a square of each chunk.
  result.memory.saved = bytes_16 * 2 * keys + bytes_16 * t() * heads * static_cast<double>(m.chunk);
  result.memory.gradient = bytes_16 * (2 * keys + t() * d);
  const double states = keys / static_cast<double>(m.chunk) * static_cast<double>(m.width);
  result.memory.forward = bytes_16 * (keys + 2 * t() * d + states);
  result.memory.backward = bytes_16 * (2 * keys + 3 * t() * d + 2 * states);
  gated_norm(2 * bytes_16 * t() * d);
}

std::vector<KernelRow> mixer_kernels(const Model& model, const Stack& stack, double tokens) {
  std::vector<KernelRow> rows;
  for (std::int64_t layer = 0; layer < model.layers && rows.empty(); ++layer) {
    if (!kind_of(model, layer).has_mixer()) continue;
    const Strategy strategy;
    const Load load{.tokens = tokens};
    LayerWriter writer{
        model, stack, strategy, load, fusion_of(stack, strategy), layer_parts(model, layer), {}};
    writer.mixer();
    for (const Unit& unit : writer.units) {
      const bool product = unit.role != Role::convolution && writer.has(unit.role) &&
                           writer.part(unit.role).multiplies();
      if (in_mixer(unit.role) && !product)
        rows.insert(rows.end(), unit.forward.begin(), unit.forward.end());
    }
  }
  return rows;
}

}  // namespace stepsim
