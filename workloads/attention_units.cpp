#include "workloads/layer_writer.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

void LayerWriter::attention() {
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
  core(q, kv);
  linear("self_attn.o_proj", q, h(), a.output_bias);
  units.back().saved_bytes = half * t() * q;
  residual("attention_residual");
}

void LayerWriter::core(double q, double kv) {
  const Attention& a = model.attention;
  const double rotated = t() * (q + kv);
  const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
  Unit& attend =
      unit("self_attn.attend", sinks,
           {fused.rope ? memory("rope", 2 * half * rotated, 1) : memory("rope", 20 * rotated, 10),
            {"attention", KernelClass::attention, 4 * q * load.attended,
             half * t() * (2 * q + 2 * kv), 1}});
  // The result and a logarithm for each row and head, beside queries, keys and values.
  attend.core_bytes = half * t() * q + 4 * t() * static_cast<double>(a.heads);
  attend.saved_bytes = half * t() * (q + 2 * kv) + attend.core_bytes;
  attend.core_rows = 1;
}

}  // namespace stepsim
