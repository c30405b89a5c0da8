#include "workloads/layers/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
double Unit::elements() const {
  return std::accumulate(tensors.begin(), tensors.end(), 0.0);
}

Stack::Fusion fusion_of(const Stack& stack, const Strategy& strategy) {
  Stack::Fusion fused = stack.fused;
  if (strategy.compiled) fused.norm = fused.rope = fused.activation = fused.residual = true;
  return fused;
}

Stack::Fusion fusion_for(const Model& model, const Stack& stack, const Strategy& strategy) {
  Stack::Fusion fused = fusion_of(stack, strategy);
  fused.norm = fused.norm || model.encoder;
  return fused;
}

CrossEntropy cross_entropy_of(const Stack& stack, const Strategy& strategy) {
  const CrossEntropy kind = strategy.cross_entropy.value_or(stack.cross_entropy);
  if (!strategy.precision.whole()) return kind;  // logits come in 16 bits
  if (kind == CrossEntropy::kernel_32) return CrossEntropy::kernel;
  const bool casts = kind == CrossEntropy::logits || kind == CrossEntropy::logits_16;
  return casts ? CrossEntropy::logits_32 : kind;
}

AttentionKernel attention_of(const Stack& stack, const Strategy& strategy) {
  return strategy.attention.value_or(stack.attention);
}

bool is_fused(const Experts& experts, ExpertLayout layout) {
  return layout == ExpertLayout::model ? experts.fused : layout == ExpertLayout::fused;
}

// Returns a norm's kernel. With the residual added in the same kernel both terms are read, and
// their sum is written as well.
KernelRow norm_row(const Operators& all, const Stack::Fusion& fused, double rows, double width,
                   bool residual) {
  if (!fused.norm) return counted(all, Operator::norm, rows, width);
  const bool both = residual && fused.residual;
  return counted(all, both ? Operator::norm_residual : Operator::norm_fused, rows, width);
}

const Part& LayerWriter::part(Role role) const {
  for (const Part& each : parts)
    if (each.role == role) return each;
  throw std::logic_error(
      fmt::format("{} lists no part of role {}", model.name, static_cast<int>(role)));
}

bool LayerWriter::has(Role role) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Part& each) { return each.role == role; });
}

Unit& LayerWriter::unit(Role role, std::string name, std::vector<double> tensors,
                        std::vector<KernelRow> rows) {
  Unit& added = units.emplace_back();
  added.role = role;
  added.name = std::move(name);
  added.owners = tensors.empty() ? 0 : 1;
  added.tensors = std::move(tensors);
  added.trained = !frozen();
  added.backward = backward(rows);
  added.forward = std::move(rows);
  return added;
}

std::vector<KernelRow> LayerWriter::backward(const std::vector<KernelRow>& forward) const {
  return frozen() && !flattens_frozen(strategy) ? frozen_backward_of(forward, stack.operators)
                                                : backward_of(forward, stack.operators);
}

void LayerWriter::norm(Role role, double heads) {
  const Part& vector = part(role);
  const double width = static_cast<double>(vector.out);
  const std::vector<double> tensors(static_cast<std::size_t>(vector.tensors()), width);
  const bool of_layer = role == Role::attention_norm || role == Role::feed_forward_norm;
  Unit& added = unit(role, vector.name, tensors,
                     {norm_row(stack.operators, fused, t() * heads, width, of_layer)});
  added.kind = TensorClass::norm;
  added.plain_modules = tensors.empty() ? 1 : 0;
  added.memory.saved = t() * width * heads * (fused.norm ? bytes_16 : bytes_16 + 4);
  added.memory.gradient = bytes_16 * t() * width * heads;
  added.memory.forward = added.memory.backward = fused.norm ? 0 : 4 * t() * width * heads;
}

void LayerWriter::linear(Role role) {
  const Part& matrix = part(role);
  const double in = static_cast<double>(matrix.in), out = static_cast<double>(matrix.out);
  std::vector<double> tensors{in * out};
  if (matrix.bias) tensors.push_back(out);
  Unit& added = unit(role, matrix.name, std::move(tensors), {gemm("linear", t(), in, out)});
  added.memory.result = bytes_16 * t() * out;
  // Added in the product's own kernel; its gradient is a sum over all tokens.
  if (matrix.bias) added.backward.push_back(count(Operator::bias_gradient, t(), out));
  added.memory.gradient = bytes_16 * t() * in;
  if (!frozen()) return;
  quantise(added, 1);
  hold_unpacked(added, stack, strategy, in * out);
  keep_packed_input(added, bytes_16 * t() * in);
  if (in_shared_expert(role) && !stack.adapters.shared) return;
  if ((strategy.lora.targets != LoraTargets::attention || in_attention(role)) &&
      strategy.lora.chooses(matrix.name))
    if (const auto whole = beside_adapter(matrix)) adapter(*whole);
}

void LayerWriter::keeps_input(double bytes) {
  if (units.back().trained && !units.back().own_input) units.back().memory.saved += bytes;
}

// Writes the norm behind a block of families that have one there as well.
void LayerWriter::result_norm(Role role) {
  if (has(role)) norm(role);
}

// Unless the next norm does it.
void LayerWriter::residual(Role role, std::string name) {
  if (model.encoder && model.encoder->drops) {
    Unit& drop = unit(role, "dropout", {}, {count(Operator::dropout, t(), h())});
    drop.plain_modules = 1;
    drop.backward = drop.forward;
    drop.memory.saved = t() * h();  // a byte says what stays
    drop.memory.gradient = bytes_16 * t() * h();
  }
  if (!fused.residual) unit(role, std::move(name), {}, {count(Operator::residual, t(), h())});
}

KernelRow LayerWriter::activation_row(double rows, double width, bool gated) const {
  return count(!gated             ? Operator::activation_ungated
               : fused.activation ? Operator::activation_fused
                                  : Operator::activation,
               rows, width);
}

double LayerWriter::activation_bytes(double rows, double width, bool gated) const {
  return bytes_16 * rows * width * (gated ? (fused.activation ? 2 : 3) : 1);
}

void LayerWriter::dense_ffn(const FeedForwardRoles& roles) {
  const bool fuse = has(roles.gate_up), gated = fuse || has(roles.gate);
  if (fuse) {
    linear(roles.gate_up);
  } else {
    if (gated) linear(roles.gate);
    linear(roles.up);
  }
  if (model.norms != Norms::once) {  // else attention keeps it already
    keeps_input(bytes_16 * t() * h());
    units.back().memory.normed = units.back().memory.saved;
  }
  const double width = static_cast<double>(part(roles.down).in);
  Unit& act =
      unit(roles.activation, part(roles.activation).name, {}, {activation_row(t(), width, gated)});
  act.plain_modules = 2;  // the block and its activation
  act.memory.saved = activation_bytes(t(), width, gated);
  // The two parts of one tensor are put together.
  const bool in_place = fused.in_place && !fuse;
  act.memory.gradient = in_place ? 0 : bytes_16 * t() * width * (gated ? 2 : 1);
  act.memory.backward = gated && !fused.activation ? bytes_16 * t() * width : 0;
  linear(roles.down);
  keeps_input(bytes_16 * t() * width);
}

void LayerWriter::feed_forward(bool with_experts) {
  if (has(Role::feed_forward_norm)) norm(Role::feed_forward_norm);
  const std::size_t first = units.size();
  if (with_experts)
    experts(*model.experts);
  else
    dense_ffn({Role::gate, Role::up, Role::gate_up, Role::activation, Role::down});
  for (std::size_t i = first; i < units.size(); ++i)
    if (units[i].part == LayerPart::none)
      units[i].part = with_experts ? LayerPart::moe : LayerPart::mlp;
  result_norm(Role::feed_forward_result_norm);
  residual(Role::feed_forward_residual, "ffn_residual");
}

std::vector<Unit> layer_units(const Model& model, const Stack& stack, const Strategy& strategy,
                              const Load& load, std::int64_t layer) {
  LayerWriter writer{
      model, stack, strategy, load, fusion_for(model, stack, strategy), layer_parts(model, layer),
      {}};
  const LayerKind kind = kind_of(model, layer);
  if (kind.mixes != LayerKind::Mixes::nothing) writer.mix_tokens(kind);
  if (kind.follows != LayerKind::Follows::nothing)
    writer.feed_forward(kind.follows == LayerKind::Follows::experts);
  // The layer itself is called, too.
  if (kind.mixes == LayerKind::Mixes::nothing) writer.units.front().plain_modules = 1;
  return std::move(writer.units);
}

}  // namespace stepsim
