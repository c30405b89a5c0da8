#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

void LayerWriter::attention() {
  const Attention& a = model.attention;
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries), k = static_cast<double>(widths.keys);
  norm("input_layernorm", h(), 1);
  units.back().plain_modules = 2;  // the layer and its attention block
  std::vector<KernelRow> rows;
  double rotated = t() * (q + k);
  if (a.latent) {
    project_latent(*a.latent);
    // Parts of queries and keys are turned, and put beside the others; one such part of the keys is
    // copied to every head.
    rotated = t() * static_cast<double>((a.heads + 1) * a.latent->rotary);
    rows.push_back(memory("join_heads", 2 * half * t() * (q + k), 2));
  } else {
    project();
  }
  if (model.positions == Positions::rotary)
    rows.push_back(fused.rope ? memory("rope", 2 * half * rotated, 1)
                              : memory("rope", 20 * rotated, 10));
  core(std::move(rows));
  const double result = static_cast<double>(widths.result);
  linear("self_attn.o_proj", result, h(), a.output_bias);
  keeps_input(half * t() * result);
  residual("attention_residual");
}

void LayerWriter::project() {
  const Attention& a = model.attention;
  const double q = static_cast<double>(a.heads * a.head_dim);
  const double kv = static_cast<double>(a.kv_heads * a.head_dim);
  if (a.fused_qkv) {
    linear("self_attn.qkv_proj", h(), q + 2 * kv, a.qkv_bias);
  } else {
    linear("self_attn.q_proj", h(), q, a.qkv_bias);
    linear("self_attn.k_proj", h(), kv, a.qkv_bias);
    linear("self_attn.v_proj", h(), kv, a.qkv_bias);
  }
  keeps_input(half * t() * h());  // the projections share it
  units.back().normed_bytes = units.back().saved_bytes;
  if (a.qk_norm != Attention::QkNorm::none) {
    const double d = static_cast<double>(a.head_dim);
    const bool per_head = a.qk_norm == Attention::QkNorm::per_head;
    norm("self_attn.q_norm", per_head ? d : q, per_head ? q / d : 1);
    norm("self_attn.k_norm", per_head ? d : kv, per_head ? kv / d : 1);
  }
}

void LayerWriter::project_latent(const Latent& latent) {
  const Attention& a = model.attention;
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries);
  const double narrow = static_cast<double>(latent.query_width);
  const double width = static_cast<double>(latent.width);
  if (latent.query_width > 0) {
    linear("self_attn.q_a_proj", h(), narrow, a.qkv_bias);
    norm("self_attn.q_a_layernorm", narrow, 1);
    linear("self_attn.q_b_proj", narrow, q, false);
    units.back().part = LayerPart::mla_up_proj;
    keeps_input(half * t() * narrow);
  } else {
    linear("self_attn.q_proj", h(), q, false);
    units.back().part = LayerPart::mla_up_proj;
  }
  linear("self_attn.kv_a_proj_with_mqa", h(), width + static_cast<double>(latent.rotary),
         a.qkv_bias);
  keeps_input(half * t() * h());
  units.back().normed_bytes = units.back().saved_bytes;
  norm("self_attn.kv_a_layernorm", width, 1);
  const std::int64_t own_keys = widths.keys - a.heads * latent.rotary;
  linear("self_attn.kv_b_proj", width, static_cast<double>(own_keys + widths.values), false);
  keeps_input(half * t() * width);
  units.back().part = LayerPart::mla_up_proj;
}

// Which keys a kernel looks at: those of the document, those before it in the row, or, behind a
// mask that it is handed, all of the row.
void LayerWriter::core(std::vector<KernelRow> rows) {
  const Attention& a = model.attention;
  const AttentionKernel kernel = attention_of(stack, strategy);
  if (kernel == AttentionKernel::eager || kernel == AttentionKernel::sdpa_math) {
    core_in_memory(std::move(rows));
    return;
  }
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries), out = static_cast<double>(widths.result);
  const double inputs = q + static_cast<double>(widths.keys + widths.values);
  double keys = load.attended, forward = 1, backward = 1;
  const Stack::AttentionShares& shares = stack.attention_shares;
  if (kernel == AttentionKernel::sdpa) keys = load.in_rows;
  if (kernel == AttentionKernel::sdpa_efficient) {
    keys = load.in_squares;
    forward = shares.efficient_forward.value.value;
    backward = shares.efficient_backward.value.value;
  }
  if (kernel == AttentionKernel::flex) {
    forward = shares.flex_forward.value.value;
    backward = shares.flex_backward.value.value;
  }
  // Scores and values may have heads of different widths: the kernel's is their mean.
  const double heads = static_cast<double>(a.heads);
  KernelRow row = stepsim::attention("attention", t(), keys / t(), heads, (q + out) / (2 * heads));
  row.bytes = half * t() * (inputs + out);
  row.share = forward;
  row.later = kernel == AttentionKernel::flash3;
  rows.push_back(row);
  const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
  Unit& attend = unit("self_attn.attend", sinks, std::move(rows));
  if (a.latent) attend.part = LayerPart::mla_up_proj;
  attend.backward.back().share = backward;
  // The result and a logarithm for each row and head, beside queries, keys and values.
  attend.core_bytes = half * t() * out + 4 * t() * static_cast<double>(a.heads);
  attend.saved_bytes = half * t() * inputs + attend.core_bytes;
  attend.core_rows = 1;
  // Both generations of the kernel are called with the lengths of sequences.
  if (kernel == AttentionKernel::flash || kernel == AttentionKernel::flash3)
    attend.syncs = stack.attention_reads;
  // The flash kernel sums the gradient of its queries in fp32.
  attend.gradient_bytes = half * t() * inputs;
  attend.backward_bytes = 4 * t() * q;
}

// Scores of all pairs of a row as a tensor in memory: a product, what makes probabilities of them,
// and another product. Eager code repeats keys and values for each head, scales, adds a mask, takes
// the softmax in 32 bits and casts back; with fused kernels that is one. PyTorch's fallback
// stays in 32 bits throughout.
void LayerWriter::core_in_memory(std::vector<KernelRow> rows) {
  const Attention& a = model.attention;
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries), out = static_cast<double>(widths.result);
  const double kv = static_cast<double>(widths.keys + widths.values);
  const std::size_t rotation = rows.size();
  const bool eager = attention_of(stack, strategy) == AttentionKernel::eager;
  const bool one = fused.activation;  // by a compiler, or as in Megatron, whose kernels are its own
  const double scores = load.in_squares * static_cast<double>(a.heads);
  const double width = eager ? half : 4;  // bytes of a score where it is multiplied
  const auto product = [&](double numbers) {
    return KernelRow{"scores", KernelClass::gemm, 2 * numbers * load.in_squares,
                     half * 2 * t() * numbers + width * scores, 1};
  };
  if (eager && a.kv_heads < a.heads)
    rows.push_back(memory("repeat", 2 * half * t() * (q + kv / 2), 2));
  rows.push_back(product(q));
  if (!eager)
    rows.push_back(memory("softmax", (8 + 8) * scores, 2));
  else if (one)
    rows.push_back(memory("softmax", (2 + 2) * scores, 1));
  else
    rows.push_back(memory("softmax", (4 + 4 + 6 + 6) * scores, 4));
  rows.push_back(product(out));
  const auto core_rows = static_cast<int>(rows.size() - rotation);
  const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
  Unit& attend = unit("self_attn.attend", sinks, std::move(rows));
  // Probabilities in 32 bits for the softmax and in 16 for the product, or once for both.
  const double kept = eager ? (one ? half : 4 + half) : 4;
  attend.core_bytes = kept * scores + (eager && a.kv_heads < a.heads ? 2 * half * t() * q : 0);
  attend.saved_bytes = half * t() * (q + kv) + attend.core_bytes;
  attend.core_rows = core_rows;
  attend.gradient_bytes = half * t() * (q + kv);
  attend.backward_bytes = (width + 4) * scores;  // of the probabilities, and of the scores
}

}  // namespace stepsim
