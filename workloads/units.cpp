#include "workloads/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

struct LayerWriter {
  const Model& model;
  const Stack& stack;
  const Strategy& strategy;
  const Load& load;
  std::vector<Unit> units;

  double t() const { return load.tokens; }
  double h() const { return static_cast<double>(model.hidden); }

  Unit& unit(std::string name, std::vector<double> tensors, std::vector<KernelRow> rows) {
    Unit made;
    made.name = std::move(name);
    made.owners = tensors.empty() ? 0 : 1;
    made.tensors = std::move(tensors);
    made.backward = backward_of(rows);
    made.forward = std::move(rows);
    return units.emplace_back(std::move(made));
  }

  // Eager: cast up, square, mean, rsqrt, scale, cast down, weight; fused: read and write once.
  KernelRow norm_row(double width) const {
    return stack.fused.norm ? memory("norm", 2 * half * t() * width, 1)
                            : memory("norm", 28 * t() * width, 6);
  }

  void norm(std::string name, double width, double calls) {
    std::vector<double> tensors{width};
    if (model.norm_bias) tensors.push_back(width);
    Unit& made = unit(std::move(name), std::move(tensors), {norm_row(width * calls)});
    made.kind = TensorClass::norm;
    made.saved_bytes = t() * width * calls * (stack.fused.norm ? half : half + 4);
  }

  void linear(std::string name, double in, double out, bool bias) {
    std::vector<double> tensors{in * out};
    if (bias) tensors.push_back(out);
    unit(std::move(name), std::move(tensors), {gemm("linear", t(), in, out)}).saved_bytes = 0;
  }

  void attention() {
    const Attention& a = model.attention;
    const double q = static_cast<double>(a.heads * a.head_dim);
    const double kv = static_cast<double>(a.kv_heads * a.head_dim);
    norm("input_layernorm", h(), 1);
    units.back().plain_modules = 2;  // the layer and its attention block
    if (a.fused_qkv) {
      linear("self_attn.qkv_proj", h(), q + 2 * kv, a.qkv_bias);
    } else {
      linear("self_attn.q_proj", h(), q, a.qkv_bias);
      linear("self_attn.k_proj", h(), kv, a.qkv_bias);
      linear("self_attn.v_proj", h(), kv, a.qkv_bias);
    }
    units.back().saved_bytes = half * t() * h();  // the projections share their input
    if (a.qk_norm != Attention::QkNorm::none) {
      const double d = static_cast<double>(a.head_dim);
      const bool per_head = a.qk_norm == Attention::QkNorm::per_head;
      norm("self_attn.q_norm", per_head ? d : q, per_head ? q / d : 1);
      norm("self_attn.k_norm", per_head ? d : kv, per_head ? kv / d : 1);
    }
    const double rotated = t() * (q + kv);
    const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
    Unit& attend = unit("self_attn.attend", sinks,
                        {stack.fused.rope ? memory("rope", 2 * half * rotated, 1)
                                          : memory("rope", 20 * rotated, 10),
                         {"attention", KernelClass::attention, 4 * q * load.attended,
                          half * t() * (2 * q + 2 * kv), 1}});
    attend.saved_bytes = half * t() * (2 * q + 2 * kv) + 4 * t() * static_cast<double>(a.heads);
    linear("self_attn.o_proj", q, h(), a.output_bias);
    units.back().saved_bytes = half * t() * q;
    unit("attention_residual", {}, {memory("residual", 3 * half * t() * h(), 1)});
  }

  // Gate, up, activation, down over `rows` tokens of width `width`.
  std::vector<KernelRow> ffn_rows(double rows, double width, bool gated) const {
    std::vector<KernelRow> list{gemm("up", rows, h(), width)};
    if (gated) list.push_back(gemm("gate", rows, h(), width));
    list.push_back(stack.fused.activation || !gated
                       ? memory("activation", 3 * half * rows * width, 1)
                       : memory("activation", 5 * half * rows * width, 2));
    list.push_back(gemm("down", rows, width, h()));
    return list;
  }

  void dense_ffn(std::string_view prefix, double width, bool gated, bool fused, bool bias) {
    if (fused && gated) {
      linear(fmt::format("{}.gate_up_proj", prefix), h(), 2 * width, bias);
    } else {
      if (gated) linear(fmt::format("{}.gate_proj", prefix), h(), width, bias);
      linear(fmt::format("{}.up_proj", prefix), h(), width, bias);
    }
    units.back().saved_bytes = half * t() * h();
    Unit& act =
        unit(fmt::format("{}.act_fn", prefix), {},
             {stack.fused.activation || !gated ? memory("activation", 3 * half * t() * width, 1)
                                               : memory("activation", 5 * half * t() * width, 2)});
    act.plain_modules = 2;  // the block and its activation
    act.saved_bytes = half * t() * width * (gated ? (stack.fused.activation ? 2 : 3) : 1);
    linear(fmt::format("{}.down_proj", prefix), width, h(), bias);
    units.back().saved_bytes = half * t() * width;
  }

  static std::vector<double> with_bias(std::vector<double> matrices, bool bias,
                                       const std::vector<double>& biases) {
    if (bias) matrices.insert(matrices.end(), biases.begin(), biases.end());
    return matrices;
  }

  void router(const Experts& e) {
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
  void expert_loop(const Experts& e) {
    const double share = t() * static_cast<double>(e.per_token) / static_cast<double>(e.count);
    const double w = static_cast<double>(e.width);
    std::vector<KernelRow> rows = ffn_rows(share, w, true);
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

  void grouped_experts(const Experts& e) {
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
  void tutel_experts(const Experts& e) {
    const double routed = t() * static_cast<double>(e.per_token);
    const double slots = routed * strategy.capacity_factor;
    const double w = static_cast<double>(e.width), n = static_cast<double>(e.count);
    const double local = n / static_cast<double>(strategy.expert_parallel);
    const double k = static_cast<double>(e.per_token);
    Unit& encode = unit("mlp.encode", {},
                        {memory("masks", 2 * 8 * k * t() * n, 6 * k),
                         memory("encode", 2 * 4 * slots * h(), 2 * k)});
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

  void shared_expert(const Experts& e) {
    const std::size_t first = units.size();
    if (e.shared_width > 0)
      dense_ffn("mlp.shared_expert", static_cast<double>(e.shared_width), true, false, false);
    if (e.shared_gate) linear("mlp.shared_expert_gate", h(), 1, false);
    for (std::size_t i = first; i < units.size(); ++i) units[i].in_moe = true;
  }

  void feed_forward(bool with_experts) {
    norm("post_attention_layernorm", h(), 1);
    const FeedForward& ffn = model.feed_forward;
    if (!with_experts) {
      dense_ffn("mlp", static_cast<double>(ffn.width), ffn.gated, ffn.fused_gate_up, ffn.bias);
    } else {
      const Experts& e = *model.experts;
      router(e);
      if (strategy.moe_kernel == MoeKernel::tutel)
        tutel_experts(e);
      else if (strategy.moe_kernel == MoeKernel::loop && !e.fused)
        expert_loop(e);
      else
        grouped_experts(e);
      shared_expert(e);
    }
    unit("ffn_residual", {}, {memory("residual", 3 * half * t() * h(), 1)});
  }
};

}  // namespace

double Unit::elements() const {
  return std::accumulate(tensors.begin(), tensors.end(), 0.0);
}

Load load_of(const Model& model, const Job& job, std::int64_t layer) {
  const double s = static_cast<double>(job.sequence);
  const Attention& a = model.attention;
  const bool windowed =
      a.sliding_window > 0 && (a.full_every == 0 || (layer + 1) % a.full_every != 0);
  const double w = windowed ? std::min(s, static_cast<double>(a.sliding_window)) : s;
  // Causal: the first w queries see 1, 2, ... w keys, the others w each.
  const double per_sequence = w * (w + 1) / 2 + (s - w) * w;
  return {job.slots(), static_cast<double>(job.rows()) * per_sequence};
}

std::vector<Unit> layer_units(const Model& model, const Stack& stack, const Strategy& strategy,
                              const Load& load, std::int64_t layer) {
  LayerWriter writer{model, stack, strategy, load, {}};
  writer.attention();
  writer.feed_forward(has_experts(model, layer));
  return std::move(writer.units);
}

}  // namespace stepsim
