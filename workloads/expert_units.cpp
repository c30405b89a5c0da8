#include "workloads/layer_writer.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

std::vector<double> with_bias(std::vector<double> matrices, bool bias,
                              const std::vector<double>& biases) {
  if (bias) matrices.insert(matrices.end(), biases.begin(), biases.end());
  return matrices;
}

}  // namespace

void LayerWriter::experts(const Experts& e) {
  router(e);
  if (strategy.moe_kernel == MoeKernel::tutel)
    tutel_experts(e);
  else if (strategy.moe_kernel == MoeKernel::loop && !e.fused)
    expert_loop(e);
  else
    grouped_experts(e);
  shared_expert(e);
}

void LayerWriter::router(const Experts& e) {
  const double n = static_cast<double>(e.count);
  // Softmax, top-k, one-hot masks: about twelve operators over [tokens, experts].
  Unit& made = unit("mlp.gate", with_bias({h() * n}, e.bias, {n}),
                    {gemm("router", t(), h(), n), memory("routing", 12 * 4 * t() * n, 12)});
  made.in_moe = true;
  made.plain_modules = 1;
  made.saved_bytes = t() * n * (4 + 4) + half * t() * h();
  if (strategy.moe_kernel == MoeKernel::loop)  // the int64 one-hot mask lives through the layer
    made.saved_bytes += 8 * n * static_cast<double>(e.per_token) * t();
}

// One expert after the other, as Hugging Face runs them: find its tokens, gather them, three
// linears, scatter back. Reading which tokens are its own stops the host twice.
void LayerWriter::expert_loop(const Experts& e) {
  const double share = t() * static_cast<double>(e.per_token) / static_cast<double>(e.count);
  const double w = static_cast<double>(e.width);
  std::vector<KernelRow> rows{gemm("up", share, h(), w), gemm("gate", share, h(), w),
                              activation_row(share, w, true), gemm("down", share, w, h())};
  rows.push_back(memory("dispatch", 6 * half * share * h(), 8));
  Unit& made =
      unit("mlp.experts", with_bias({h() * w, h() * w, h() * w}, e.bias, {w, w, h()}), rows);
  // The gradient of x[token_idx] is a zero-filled tensor of all tokens that is then added, and
  // accumulating into it sorts: two full passes, and six to eight kernels twice.
  made.backward.push_back(memory("index_backward", 4 * half * t() * h(), 16));
  made.kind = TensorClass::expert;
  made.times = e.count;
  made.syncs = 2;
  made.owners = 3;
  made.plain_modules = 2;
  made.in_moe = true;
  made.saved_bytes = half * share * (2 * h() + 4 * w);
}

void LayerWriter::grouped_experts(const Experts& e) {
  const double rows = t() * static_cast<double>(e.per_token);
  const double w = static_cast<double>(e.width), n = static_cast<double>(e.count);
  const double weights = 3 * n * h() * w;
  // The kernel takes one three-dimensional tensor for gate and up and one for down, however a
  // checkpoint stores them.
  Unit& made =
      unit("mlp.experts", with_bias({2 * n * h() * w, n * h() * w}, e.bias, {2 * n * w, n * h()}),
           {{"grouped", KernelClass::grouped_gemm, 6 * rows * h() * w,
             half * (weights + rows * (2 * h() + 4 * w)), 2},
            memory("activation", 5 * half * rows * w, 2),
            memory("permute", 4 * half * rows * h(), 21)});
  made.kind = TensorClass::expert;
  made.plain_modules = 1;
  made.in_moe = true;
  made.saved_bytes = half * rows * (2 * h() + 4 * w);
}

// Slots of fixed capacity per expert: encode into them, exchange between the ranks that hold the
// experts, one batched product per matrix, exchange back, decode. The encoder works in fp32.
void LayerWriter::tutel_experts(const Experts& e) {
  const double routed = t() * static_cast<double>(e.per_token);
  const double slots = routed * strategy.capacity_factor;
  const double w = static_cast<double>(e.width), n = static_cast<double>(e.count);
  const double local = n / static_cast<double>(strategy.expert_parallel);
  const double k = static_cast<double>(e.per_token);
  Unit& encode = unit(
      "mlp.encode", {},
      {memory("masks", 2 * 8 * k * t() * n, 6 * k), memory("encode", 2 * 4 * slots * h(), 2 * k)});
  encode.in_moe = true;
  encode.saved_bytes = 8 * k * t();
  const double matrix = local * h() * w;
  const std::vector<double> biases{local * w, local * w, local * h()};
  Unit& made = unit("mlp.experts", with_bias({matrix, matrix, matrix}, e.bias, biases),
                    {{"batched", KernelClass::grouped_gemm, 6 * slots * h() * w,
                      half * (3 * local * h() * w + slots * (2 * h() + 4 * w)), 3},
                     memory("activation", 5 * half * slots * w, 2)});
  made.kind = TensorClass::expert;
  made.plain_modules = 1;
  made.in_moe = true;
  made.syncs = 1;  // the capacity is read back
  made.exchange = strategy.expert_parallel > 1 ? half * slots * h() : 0;
  const double exchanged = made.exchange;
  made.saved_bytes = half * slots * (2 * h() + 4 * w);
  Unit& decode = unit("mlp.decode", {}, {memory("decode", 2 * 4 * slots * h(), 3 * k)});
  decode.in_moe = true;
  decode.exchange = exchanged;
  decode.saved_bytes = half * slots * h();
}

void LayerWriter::shared_expert(const Experts& e) {
  const std::size_t first = units.size();
  if (e.shared_width > 0)
    dense_ffn("mlp.shared_expert", static_cast<double>(e.shared_width), true, false, false);
  if (e.shared_gate) linear("mlp.shared_expert_gate", h(), 1, false);
  for (std::size_t i = first; i < units.size(); ++i) units[i].in_moe = true;
}

}  // namespace stepsim
