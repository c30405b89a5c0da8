#include "workloads/layers/units.hpp"

#include <fmt/format.h>

#include <numeric>

#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

double Unit::elements() const {
  return std::accumulate(tensors.begin(), tensors.end(), 0.0);
}

Stack::Fusion fusion_of(const Stack& stack, const Strategy& strategy) {
  Stack::Fusion fused = stack.fused;
  if (strategy.compiled) fused.norm = fused.rope = fused.activation = fused.residual = true;
  return fused;
}

CrossEntropy cross_entropy_of(const Stack& stack, const Strategy& strategy) {
  return strategy.cross_entropy.value_or(stack.cross_entropy);
}

AttentionKernel attention_of(const Stack& stack, const Strategy& strategy) {
  return strategy.attention.value_or(stack.attention);
}

bool is_fused(const Experts& experts, ExpertLayout layout) {
  return layout == ExpertLayout::model ? experts.fused : layout == ExpertLayout::fused;
}

// Eager: cast up, square, mean, rsqrt, scale, cast down, weight; fused: read and write once. With
// the residual added in the same kernel both terms are read, and their sum is written as well.
KernelRow norm_row(const Stack::Fusion& fused, double rows, double width, bool residual) {
  if (!fused.norm) return memory("norm", 28 * rows * width, 6);
  return memory("norm", (residual && fused.residual ? 4 : 2) * half * rows * width, 1);
}

Unit& LayerWriter::unit(std::string name, std::vector<double> tensors,
                        std::vector<KernelRow> rows) {
  Unit made;
  made.name = std::move(name);
  made.owners = tensors.empty() ? 0 : 1;
  made.tensors = std::move(tensors);
  made.trained = !frozen();
  made.backward = backward(rows);
  made.forward = std::move(rows);
  return units.emplace_back(std::move(made));
}

std::vector<KernelRow> LayerWriter::backward(const std::vector<KernelRow>& forward) const {
  return frozen() ? frozen_backward_of(forward) : backward_of(forward);
}

// NF4 as bitsandbytes stores it: 4 bits, for each 64 weights a scale in 8, and for each 256 scales
// one in 32. Each pass unpacks scales and weights into 16 bits before it multiplies.
void LayerWriter::quantise(Unit& unit, std::size_t matrices) const {
  if (strategy.lora.quantised == Quantised::none) return;
  constexpr double bytes = 0.5 + 1.0 / 64 + 4.0 / 64 / 256;
  double unpacked = 0;
  for (std::size_t i = 0; i < matrices; ++i) {  // biases behind them stay as they are
    unpacked += unit.tensors[i];
    unit.tensors[i] *= bytes / half;
  }
  unit.forward.insert(unit.forward.begin(), memory(unpack, unpacked * (bytes + half), 2));
  unit.backward.insert(unit.backward.begin(), memory(unpack, unpacked * (bytes + half), 2));
}

void LayerWriter::norm(std::string name, double width, double calls) {
  std::vector<double> tensors{width};
  if (model.norm_bias) tensors.push_back(width);
  const bool of_layer = width == h() && calls == 1;
  Unit& made =
      unit(std::move(name), std::move(tensors), {norm_row(fused, t() * calls, width, of_layer)});
  made.kind = TensorClass::norm;
  made.saved_bytes = t() * width * calls * (fused.norm ? half : half + 4);
  made.gradient_bytes = half * t() * width * calls;
  made.forward_bytes = made.backward_bytes = fused.norm ? 0 : 4 * t() * width * calls;
}

void LayerWriter::linear(const std::string& name, double in, double out, bool bias) {
  std::vector<double> tensors{in * out};
  if (bias) tensors.push_back(out);
  Unit& made = unit(name, std::move(tensors), {gemm("linear", t(), in, out)});
  made.result_bytes = half * t() * out;
  // Added in the product's own kernel; its gradient is a sum over all tokens.
  if (bias) made.backward.push_back(memory("bias_gradient", half * t() * out, 1));
  made.gradient_bytes = half * t() * in;
  if (!frozen()) return;
  quantise(made, 1);
  if (name.starts_with("mlp.shared_expert") && !stack.adapters.shared) return;
  if (strategy.lora.targets != LoraTargets::attention || name.starts_with("self_attn"))
    adapter(name, in, out);
}

void LayerWriter::keeps_input(double bytes) {
  if (units.back().trained) units.back().saved_bytes += bytes;
}

std::vector<KernelRow> adapter_backward(const std::vector<KernelRow>& products, double results,
                                        double inputs) {
  std::vector<KernelRow> backward = backward_of(products);
  backward.push_back(memory("lora_add", half * (2 * results + 3 * inputs), 2));
  return backward;
}

// What the adapter gives is scaled, and added; a compiler does both at once.
KernelRow LayerWriter::lora_add(double numbers) const {
  return strategy.compiled ? memory("lora_add", 3 * half * numbers, 1)
                           : memory("lora_add", 5 * half * numbers, 2);
}

// Down to the rank and up again, scaled and added to what the frozen matrix gives.
void LayerWriter::adapter(const std::string& name, double in, double out) {
  const double rank = static_cast<double>(strategy.lora.rank);
  const auto product = [&](std::string_view row, double from, double to) {
    return stack.adapters.grouped ? grouped_gemm(row, 1, t(), from, to) : gemm(row, t(), from, to);
  };
  std::vector<KernelRow> rows{product("lora_down", in, rank), product("lora_up", rank, out)};
  const std::vector<KernelRow> backward = adapter_backward(rows, t() * out, t() * in);
  rows.push_back(lora_add(t() * out));
  Unit& made = unit(name + ".lora", {in * rank, rank * out}, std::move(rows));
  made.backward = backward;
  made.trained = true;
  made.owners = 2;
  made.plain_modules = 2;  // the wrapper and its dropout
  made.syncs = stack.adapters.reads;
  made.saved_bytes = half * t() * rank;
  // Beside columns the way down is whole on each rank, beside rows the way up.
  const bool of_rows = name.ends_with("o_proj") || name.ends_with("down_proj");
  if (strategy.tensor_parallel.size > 1) made.common = rank * (of_rows ? out : in);
}

// Two reads and a write, unless the next norm does it.
void LayerWriter::residual(std::string name) {
  if (!fused.residual) unit(std::move(name), {}, {memory("residual", 3 * half * t() * h(), 1)});
}

// Gate, its activation and the product with up: two kernels over five tensors, fused one over
// three; without a gate one over two.
KernelRow LayerWriter::activation_row(double rows, double width, bool gated) const {
  if (!gated) return memory("activation", 2 * half * rows * width, 1);
  return fused.activation ? memory("activation", 3 * half * rows * width, 1)
                          : memory("activation", 5 * half * rows * width, 2);
}

double LayerWriter::activation_bytes(double rows, double width, bool gated) const {
  return half * rows * width * (gated ? (fused.activation ? 2 : 3) : 1);
}

void LayerWriter::dense_ffn(std::string_view prefix, double width, bool gated, bool fuse,
                            bool bias) {
  if (fuse && gated) {
    linear(fmt::format("{}.gate_up_proj", prefix), h(), 2 * width, bias);
  } else {
    if (gated) linear(fmt::format("{}.gate_proj", prefix), h(), width, bias);
    linear(fmt::format("{}.up_proj", prefix), h(), width, bias);
  }
  keeps_input(half * t() * h());
  units.back().normed_bytes = units.back().saved_bytes;
  Unit& act = unit(fmt::format("{}.act_fn", prefix), {}, {activation_row(t(), width, gated)});
  act.plain_modules = 2;  // the block and its activation
  act.saved_bytes = activation_bytes(t(), width, gated);
  // Fused, gradients take the place of what was saved; halves of one tensor are put together.
  const bool in_place = fused.activation && !(fuse && gated);
  act.gradient_bytes = in_place ? 0 : half * t() * width * (gated ? 2 : 1);
  act.backward_bytes = gated && !fused.activation ? half * t() * width : 0;
  linear(fmt::format("{}.down_proj", prefix), width, h(), bias);
  keeps_input(half * t() * width);
}

void LayerWriter::feed_forward(bool with_experts) {
  norm("post_attention_layernorm", h(), 1);
  const FeedForward& ffn = model.feed_forward;
  const std::size_t first = units.size();
  if (with_experts)
    experts(*model.experts);
  else
    dense_ffn("mlp", static_cast<double>(ffn.width), ffn.gated, ffn.fused_gate_up, ffn.bias);
  for (std::size_t i = first; i < units.size(); ++i)
    if (units[i].part == LayerPart::none)
      units[i].part = with_experts ? LayerPart::moe : LayerPart::mlp;
  residual("ffn_residual");
}

std::vector<Unit> layer_units(const Model& model, const Stack& stack, const Strategy& strategy,
                              const Load& load, std::int64_t layer) {
  LayerWriter writer{model, stack, strategy, load, fusion_of(stack, strategy), {}};
  writer.attention();
  writer.feed_forward(has_experts(model, layer));
  return std::move(writer.units);
}

}  // namespace stepsim
