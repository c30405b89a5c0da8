// Experts as the public implementations run them. Operators and kernels of the loops were counted
// with a dispatcher trace of transformers 4.57 and 5; the others follow the code.
#include <algorithm>
#include <utility>

#include "workloads/layers/layer_writer.hpp"
#include "workloads/layers/rank_share.hpp"
#include "workloads/layers/routing.hpp"

namespace stepsim {
namespace {

std::vector<double> with_bias(std::vector<double> matrices, bool bias,
                              const std::vector<double>& biases) {
  if (bias) matrices.insert(matrices.end(), biases.begin(), biases.end());
  return matrices;
}

// Counts the matrices into the width of an expert: gate and up, or up alone.
double inward(const Experts& e) {
  return e.gated ? 2 : 1;
}

// Returns the elements of each matrix of an expert: into its width, once or twice, and out of it.
std::vector<double> of_matrices(const Experts& e, double in, double out) {
  return e.gated ? std::vector{in, in, out} : std::vector{in, out};
}

std::vector<KernelRow> products_of(const Experts& e, const KernelRow& up, const KernelRow& gate,
                                   const KernelRow& down) {
  return e.gated ? std::vector{up, gate, down} : std::vector{up, down};
}

std::vector<KernelRow> with_activation(std::vector<KernelRow> products, const KernelRow& row) {
  products.insert(products.end() - 1, row);
  return products;
}

}  // namespace

// The router and what it sends are those of the rank's own tokens, where these are divided.
void LayerWriter::experts(const Experts& e) {
  const Load own = load_of_router(load, strategy);
  LayerWriter routed{model, stack, strategy, own, fused, parts, {}};
  routed.routed_experts(e);
  for (Unit& unit : routed.units) units.push_back(std::move(unit));
  shared_expert(e);
}

void LayerWriter::routed_experts(const Experts& e) {
  router(e);
  switch (strategy.experts.kernel) {
    case MoeKernel::loop:
      if (is_fused(e, strategy.experts.layout))
        loop_over_slices(e);
      else
        expert_loop(e);
      break;
    case MoeKernel::grouped:
    case MoeKernel::megablocks:
    case MoeKernel::padded:
    case MoeKernel::single_fp32:
      grouped_experts(e);
      break;
    case MoeKernel::tutel:
      tutel_experts(e);
      break;
    case MoeKernel::deepspeed:
    case MoeKernel::deepspeed_einsum:
      deepspeed_experts(e);
      break;
    case MoeKernel::all_experts:
      all_experts(e);
      break;
  }
}

void LayerWriter::router(const Experts& e) {
  const Part& matrix = part(Role::router);
  const double n = static_cast<double>(matrix.out);
  Unit& result = unit(Role::router, matrix.name, with_bias({h() * n}, matrix.bias, {n}),
                      {gemm("router", t(), h(), n), count(Operator::routing, t(), n)});
  result.in_moe = true;
  result.plain_modules = 1;
  result.memory.normed = bytes_16 * t() * h();
  result.memory.saved = t() * n * (4 + 4) + result.memory.normed;
  if (strategy.experts.kernel == MoeKernel::loop)  // the int64 one-hot mask lives through the layer
    result.memory.saved += 8 * n * static_cast<double>(e.per_token) * t();
}

// Returns what the backward pass of one round of a loop runs beside its matrix products. The
// gradient of x[token_idx] is a zero-filled tensor of all tokens that is then added, and
// accumulating into it sorts: two passes over all tokens, and each of two such operators is seven
// kernels. By masks all copies of all tokens pass, whatever the expert's share of them.
std::vector<KernelRow> LayerWriter::round_backward(double rows, double width) const {
  const KernelRow activation =
      count(fused.activation ? Operator::activation_backward_fused : Operator::activation_backward,
            rows, width);
  const Experts& e = *model.experts;
  if (e.masked)
    return {activation, count(Operator::mask_dispatch_backward, rows, h()),
            count(Operator::mask_backward, t() * static_cast<double>(e.per_token), h())};
  return {activation, count(Operator::loop_dispatch_backward, rows, h()),
          count(Operator::index_backward, t(), h())};
}

// Three products over `rows` in one unit: beside the gradients of its output and its input, each
// one row wide, either those of activation, gate and up are there, or those through gate and up.
void LayerWriter::gradients_inside(Unit& experts, double rows, double w) const {
  experts.memory.gradient = bytes_16 * rows * h();
  const double inside = inward(*model.experts) + 1;
  experts.memory.backward = bytes_16 * rows * std::max(inside * w - 2 * h(), w);
}

// One expert after the other, as Hugging Face runs them: find its tokens, gather them, three
// linears, scatter back. Reading which expert it is and which tokens are its own stops the host, as
// do two searches by a mask.
void LayerWriter::expert_loop(const Experts& e) {
  const double routed = t() * static_cast<double>(e.per_token);
  const double w = static_cast<double>(e.width);
  const auto add = [&](double rows, std::int64_t times) {
    const std::vector<KernelRow> products = products_of(
        e, gemm("up", rows, h(), w), gemm("gate", rows, h(), w), gemm("down", rows, w, h()));
    std::vector<KernelRow> forward = products;
    forward.push_back(activation_row(rows, w, e.gated));
    if (e.masked) forward.push_back(count(Operator::mask_find, routed));
    forward.push_back(
        count(e.masked ? Operator::mask_dispatch : Operator::loop_dispatch, rows, h()));
    Unit& result = expert_unit(
        with_bias(of_matrices(e, h() * w, h() * w), e.bias, of_matrices(e, w, h())), forward);
    result.backward = backward(products);
    for (const KernelRow& row : round_backward(rows, w)) result.backward.push_back(row);
    result.times = times;
    result.stops.reads = 2;
    result.owners = static_cast<int>(products.size());
    result.plain_modules = 2;
    result.memory.saved = bytes_16 * rows * (2 * h() + 2 * inward(e) * w);
    result.memory.gradient = bytes_16 * (e.masked ? routed : t()) * h();  // the zero-filled one
    if (e.masked) {
      result.memory.saved += 2 * routed;  // the masks
      // The gradient so far is there beside it, their sum, and a clone of the results' gradient.
      result.memory.backward = 3 * bytes_16 * routed * h();
    }
    if (frozen()) quantise(result, products.size());
    expert_adapter(1, rows, w, times);
  };
  if (e.masked) moe_step("mlp.repeat", {moved("repeat", routed)}, 0);
  if (strategy.experts.skew <= 0)
    add(routed / static_cast<double>(e.count), e.count);
  else
    for (const double share : expert_shares(e.count, strategy.experts.skew)) add(routed * share, 1);
  if (e.masked) sum_of_copies(routed);
}

// Writes all copies of a token times their weights, in 32 bits, and summed up.
void LayerWriter::sum_of_copies(double routed) {
  Unit& result = moe_step("mlp.sum", {count(Operator::weigh, routed, h())}, 0);
  result.backward = {count(Operator::weigh_backward, routed, h())};
  result.memory.saved = result.memory.gradient = bytes_16 * routed * h();
  result.memory.forward = result.memory.backward = 4 * routed * h();
}

// Writes the same loop inside one module that holds all experts in one tensor for gate and up and
// one for down. Taking a slice is free forward; its gradient is a zero-filled tensor of the whole
// stack, the slice copied in, and the stack added to what was there: four passes over all experts'
// weights for each expert.
void LayerWriter::loop_over_slices(const Experts& e) {
  const double n = static_cast<double>(e.count), w = static_cast<double>(e.width);
  const double rows = t() * static_cast<double>(e.per_token) / n;
  const double in = inward(e);
  const std::vector<KernelRow> products{gemm("gate_up", rows, h(), in * w),
                                        gemm("down", rows, w, h())};
  std::vector<KernelRow> forward = products;
  forward.push_back(activation_row(rows, w, e.gated));
  forward.push_back(count(Operator::slice_dispatch, rows, h()));
  Unit& result = expert_unit(
      with_bias({in * n * h() * w, n * h() * w}, e.bias, {in * n * w, n * h()}), forward);
  result.backward = backward(products);
  for (const KernelRow& row : round_backward(rows, w)) result.backward.push_back(row);
  if (!frozen()) result.backward.push_back(count(Operator::slice_backward, (in + 1) * n * h(), w));
  result.rounds = e.count;
  result.stops.reads = 5;  // the expert's number, read four times, and its tokens
  result.plain_modules = 1;
  result.memory.saved = bytes_16 * rows * n * (2 * h() + 2 * in * w);
  result.memory.gradient = bytes_16 * t() * h();
  result.memory.backward = bytes_16 * (in + 1) * n * h() * w;  // the zero-filled stack
  quantise_stack(result);
}

// Returns token slots of all experts: as many for each as the capacity says, or, when no token is
// dropped, as the busiest needs.
double LayerWriter::expert_slots(const Experts& e) const {
  const double routed = t() * static_cast<double>(e.per_token);
  return routed * (strategy.experts.capacity_factor > 0
                       ? strategy.experts.capacity_factor
                       : imbalance(e.count, strategy.experts.skew));
}

// A unit without tensors inside the MoE block, in front of which tokens may be exchanged.
Unit& LayerWriter::moe_step(std::string name, std::vector<KernelRow> rows, double exchanged) {
  Unit& result = unit(Role::move_tokens, std::move(name), {}, std::move(rows));
  result.in_moe = true;
  result.exchange = strategy.experts.parallel > 1 ? exchanged : 0;
  return result;
}

Unit& LayerWriter::expert_unit(std::vector<double> tensors, std::vector<KernelRow> rows) {
  Unit& added = unit(Role::experts, "mlp.experts", std::move(tensors), std::move(rows));
  added.kind = TensorClass::expert;
  added.in_moe = true;
  return added;
}

// Writes slots of fixed capacity per expert: encode into them, exchange between the ranks that hold
// the experts, one batched product per matrix, exchange back, decode. The encoder works in fp32.
void LayerWriter::tutel_experts(const Experts& e) {
  const double slots = expert_slots(e), w = static_cast<double>(e.width);
  const double n = static_cast<double>(e.count), k = static_cast<double>(e.per_token);
  const double local = n / static_cast<double>(strategy.experts.parallel);
  Unit& encode = moe_step(
      "mlp.encode",
      {count(Operator::tutel_masks, k * t(), n, k), count(Operator::tutel_encode, slots, h(), k)},
      0);
  encode.memory.saved = 8 * k * t();
  encode.memory.gradient = bytes_16 * t() * h();
  encode.memory.forward = 4 * slots * h() + 8 * k * t() * n;
  encode.memory.backward = 4 * slots * h();
  encode.stops.agrees = strategy.experts.capacity_factor <= 0;
  const double matrix = local * h() * w;
  const std::vector<double> biases = of_matrices(e, local * w, local * h());
  std::vector<KernelRow> kernels = products_of(e, grouped_gemm("up", local, slots / local, h(), w),
                                               grouped_gemm("gate", local, slots / local, h(), w),
                                               grouped_gemm("down", local, slots / local, w, h()));
  kernels.push_back(
      count(strategy.compiled ? Operator::tutel_activation_compiled : Operator::tutel_activation,
            slots, w));
  Unit& result = expert_unit(with_bias(of_matrices(e, matrix, matrix), e.bias, biases), kernels);
  result.plain_modules = 1;
  result.exchange = strategy.experts.parallel > 1 ? bytes_16 * slots * h() : 0;
  result.memory.saved = bytes_16 * slots * (h() + 2 * inward(e) * w);
  gradients_inside(result, slots, w);
  result.memory.forward = result.exchange;  // what arrives, beside what is sent
  Unit& decode = moe_step("mlp.decode", {count(Operator::tutel_decode, slots, h(), k)},
                          bytes_16 * slots * h());
  // The tokens that come back are cast, and the cast kept; its gradient is cast the other way.
  decode.memory.saved = 4 * slots * h();
  decode.memory.gradient = decode.memory.forward = bytes_16 * slots * h();
  decode.memory.backward = 4 * slots * h();
}

// Writes DeepSpeed's own layer: about thirty kernels of gating over [tokens, experts], tokens moved
// by index or, in older releases, multiplied by masks of tokens x slots; then a loop over local
// experts on equal chunks, which needs nothing from the device.
void LayerWriter::deepspeed_experts(const Experts& e) {
  const double slots = expert_slots(e), w = static_cast<double>(e.width);
  const double n = static_cast<double>(e.count);
  const double local = n / static_cast<double>(strategy.experts.parallel);
  const bool masks = strategy.experts.kernel == MoeKernel::deepspeed_einsum;
  const KernelRow gating = count(Operator::deepspeed_gating, t(), n);
  const KernelRow move = count(Operator::deepspeed_dispatch, slots, h());
  // A mask in fp32, its copy as flags and both again in 16 bits; the product is a dense one.
  const std::vector<KernelRow> build{count(Operator::deepspeed_masks, t(), slots),
                                     gemm("dispatch", slots, t(), h())};
  Unit& encode = moe_step(
      "mlp.encode", masks ? std::vector{gating, build[0], build[1]} : std::vector{gating, move}, 0);
  encode.memory.saved = masks ? 2 * bytes_16 * t() * slots : bytes_16 * slots * h();
  encode.memory.gradient = bytes_16 * t() * h();
  encode.stops.agrees = strategy.experts.capacity_factor <= 0;
  encode.stops.reads = 1;  // the capacity is a number of the host
  moe_step("mlp.to_experts", {}, bytes_16 * slots * h());
  const double rows = slots / local;
  Unit& result = expert_unit(
      with_bias(of_matrices(e, h() * w, h() * w), e.bias, of_matrices(e, w, h())),
      with_activation(products_of(e, gemm("up", rows, h(), w), gemm("gate", rows, h(), w),
                                  gemm("down", rows, w, h())),
                      activation_row(rows, w, e.gated)));
  result.times = static_cast<std::int64_t>(local);
  result.owners = static_cast<int>(inward(e)) + 1;
  result.plain_modules = 2;
  result.memory.saved = bytes_16 * rows * (h() + 2 * inward(e) * w);
  gradients_inside(result, rows, w);
  const KernelRow joined = count(Operator::deepspeed_join, slots, h());
  moe_step("mlp.decode",
           {joined, masks ? gemm("combine", t(), slots, h())
                          : count(Operator::deepspeed_combine, slots, h())},
           bytes_16 * slots * h());
  units.back().memory.saved = units.back().memory.gradient = bytes_16 * slots * h();
}

// Llama 4 as Hugging Face has it: each token is copied to every expert, scaled by nearly nothing
// where it was not sent, and all is multiplied: at once, or expert by expert where each is a module
// of its own.
void LayerWriter::all_experts(const Experts& e) {
  const double n = static_cast<double>(e.count), w = static_cast<double>(e.width);
  const double rows = n * t();
  moe_step("mlp.replicate", {count(Operator::replicate, (rows + t()) * h() + 2 * rows * h())}, 0)
      .memory.saved = bytes_16 * rows * h();
  const bool separate = !is_fused(e, strategy.experts.layout);
  const double in = inward(e);
  const auto add = [&](std::vector<double> tensors, std::vector<KernelRow> kernels) -> Unit& {
    Unit& result = expert_unit(std::move(tensors), std::move(kernels));
    return result;
  };
  if (separate) {
    Unit& result =
        add(with_bias(of_matrices(e, h() * w, h() * w), e.bias, of_matrices(e, w, h())),
            with_activation(products_of(e, gemm("up", t(), h(), w), gemm("gate", t(), h(), w),
                                        gemm("down", t(), w, h())),
                            activation_row(t(), w, e.gated)));
    result.times = e.count;
    result.owners = static_cast<int>(in) + 1;
    result.plain_modules = 2;
    result.memory.saved = bytes_16 * t() * (h() + 2 * in * w);
    if (frozen()) quantise(result, static_cast<std::size_t>(in) + 1);
  } else {
    Unit& result = add(with_bias({in * n * h() * w, n * h() * w}, e.bias, {in * n * w, n * h()}),
                       {grouped_gemm("gate_up", n, t(), h(), in * w),
                        grouped_gemm("down", n, t(), w, h()), activation_row(rows, w, e.gated)});
    result.plain_modules = 1;
    result.memory.saved = bytes_16 * rows * (h() + 2 * in * w);
    quantise_stack(result);
  }
  moe_step("mlp.sum", {count(Operator::sum_experts, rows + t(), h())}, 0);
}

void LayerWriter::shared_expert(const Experts& e) {
  const std::size_t first = units.size();
  if (e.shared_width > 0)
    dense_ffn({Role::shared_gate, Role::shared_up, Role::gate_up, Role::shared_activation,
               Role::shared_down});
  if (e.shared_gate) linear(Role::shared_weight);
  for (std::size_t i = first; i < units.size(); ++i) {
    units[i].in_moe = true;
    units[i].part = LayerPart::shared_experts;
    // The router has kept what both read.
    units[i].memory.saved -= std::exchange(units[i].memory.normed, 0);
  }
}

}  // namespace stepsim
