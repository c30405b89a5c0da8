#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
void LayerWriter::mix_tokens(const LayerKind& kind) {
  norm(Role::attention_norm);
  units.back().plain_modules += 2;  // the layer and its attention block, or its mixer
  if (kind.has_mixer()) mixer();
  if (kind.has_mixer() && kind.attends()) {
    ++units.front().plain_modules;
    unit(Role::attention_residual, "sum_of_both", {}, {count(Operator::residual, t(), h())});
  }
  if (kind.attends()) attention();
  result_norm(Role::attention_result_norm);
  residual(Role::attention_residual, kind.attends() ? "attention_residual" : "mixer_residual");
}

void LayerWriter::attention() {
  const Attention& a = model.attention;
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries), k = static_cast<double>(widths.keys);
  std::vector<KernelRow> rows;
  double rotated = t() * (q + k);
  if (a.latent) {
    project_latent();
    // Parts of queries and keys are turned, and put beside the others; one such part of the keys is
    // copied to every head.
    rotated = t() * static_cast<double>((a.heads + 1) * a.latent->rotary);
    rows.push_back(count(Operator::join_heads, t(), q + k));
  } else {
    project();
    if (a.rotary > 0) {  // the part that is turned, put beside the other
      rotated = t() * static_cast<double>((a.heads + a.kv_heads) * a.rotary);
      rows.push_back(count(Operator::join_heads, t(), q + k));
    }
  }
  if (model.positions == Positions::rotary)
    rows.push_back(count(fused.rope ? Operator::rope_fused : Operator::rope, rotated));
  core(std::move(rows));
  const double result = static_cast<double>(widths.result);
  if (a.gated) {
    Unit& gate = unit(Role::attention_gate, "self_attn.gate", {},
                      {count(Operator::attention_gate, t(), result)});
    gate.memory.saved = bytes_16 * t() * result;
    gate.memory.gradient = 2 * bytes_16 * t() * result;
  }
  const std::size_t core_unit = units.size() - 1;
  linear(Role::attention_output);
  if (shares_result())
    units[core_unit].memory.shared = bytes_16 * t() * result;
  else
    keeps_input(bytes_16 * t() * result);
}

AttentionKernel LayerWriter::kernel() const {
  return model.attention.relative > 0 ? AttentionKernel::eager : attention_of(stack, strategy);
}

// A flash kernel keeps its result for its backward pass, and the product behind keeps the same
// tensor, unless it casts it, or something stands between them.
bool LayerWriter::shares_result() const {
  const bool in_memory =
      kernel() == AttentionKernel::eager || kernel() == AttentionKernel::sdpa_math;
  const bool cast =
      strategy.precision.saved < bytes_16 && strategy.precision.multiplies(Products::attention);
  return !in_memory && !cast && !model.attention.gated && strategy.sequence_parallel.ulysses == 1;
}

void LayerWriter::project() {
  const Attention& a = model.attention;
  if (has(Role::query_key_value))
    linear(Role::query_key_value);
  else
    for (const Role role : {Role::query, Role::key, Role::value}) linear(role);
  keeps_input(bytes_16 * t() * h());  // the projections share it
  units.back().memory.normed = units.back().memory.saved;
  if (stack.joins_projections) join_projections();
  if (!has(Role::query_norm)) return;
  const bool per_head = a.qk_norm == Attention::QkNorm::per_head;
  norm(Role::query_norm, per_head ? static_cast<double>(a.heads) : 1);
  norm(Role::key_norm, per_head ? static_cast<double>(a.kv_heads) : 1);
}

// Adds rows of a product over the same input to those of another one, which so becomes wider.
static void join(std::vector<KernelRow>& rows, const std::vector<KernelRow>& more, double shared,
                 bool backward) {
  for (std::size_t i = 0; i < std::min(rows.size(), more.size()); ++i) {
    KernelRow& row = rows[i];
    const bool product = row.kind == KernelClass::gemm;
    row.flops += more[i].flops;
    row.bytes += more[i].bytes - (product ? shared : 0);
    if (product)
      (backward && !row.of_weights ? row.depth : row.width) +=
          backward && !row.of_weights ? more[i].depth : more[i].width;
  }
}

// Makes one product of those of queries, keys and values, as a module of one matrix runs them.
void LayerWriter::join_projections() {
  Unit* first = nullptr;
  for (Unit& each : units) {
    const bool one = each.role == Role::query || each.role == Role::key || each.role == Role::value;
    if (!one || each.adapter) continue;
    if (!first) {
      first = &each;
      continue;
    }
    const double input = bytes_16 * t() * h();
    join(first->forward, each.forward, input, false);
    join(first->backward, each.backward, input, true);
    first->memory.forward += std::exchange(each.memory.forward, 0);
    first->memory.backward += std::exchange(each.memory.backward, 0);
    each.forward.clear();
    each.backward.clear();
    each.unpacked = 0;
    each.owners = 0;
  }
}

void LayerWriter::project_latent() {
  if (has(Role::narrow_query)) {
    linear(Role::narrow_query);
    norm(Role::narrow_query_norm);
    linear(Role::wide_query);
    units.back().part = LayerPart::mla_up_proj;
    keeps_input(bytes_16 * t() * static_cast<double>(part(Role::wide_query).in));
  } else {
    linear(Role::query);
    units.back().part = LayerPart::mla_up_proj;
  }
  linear(Role::latent);
  keeps_input(bytes_16 * t() * h());
  units.back().memory.normed = units.back().memory.saved;
  norm(Role::latent_norm);
  linear(Role::wide_latent);
  keeps_input(bytes_16 * t() * static_cast<double>(part(Role::wide_latent).in));
  units.back().part = LayerPart::mla_up_proj;
  if (model.attention.indexer) index(*model.attention.indexer);
}

// Writes the indexer as transformers runs it: without gradients, in a kernel that keeps no scores
// of single heads. Attention sees all tokens all the same, those that were not chosen behind a
// mask.
void LayerWriter::index(const Indexer& indexer) {
  const double heads = static_cast<double>(indexer.heads);
  const double width = static_cast<double>(indexer.width);
  const auto add = [&](Role role, std::vector<double> tensors, const KernelRow& row) -> Unit& {
    Unit& added = unit(role, part(role).name, std::move(tensors), {row});
    added.backward.clear();
    return added;
  };
  for (const Role role : {Role::index_query, Role::index_key, Role::index_weights}) {
    const double in = static_cast<double>(part(role).in), out = static_cast<double>(part(role).out);
    add(role, {in * out}, gemm("linear", t(), in, out));
  }
  add(Role::index_key_norm, {width, width}, norm_row(stack.operators, fused, t(), width, false))
      .kind = TensorClass::norm;
  const double pairs = load.attended;
  Unit& scores = unit(Role::index_scores, "self_attn.indexer", {},
                      {{"index_scores", KernelClass::gemm, 2 * pairs * heads * width,
                        bytes_16 * t() * (heads + 1) * width + 2 * bytes_32 * pairs, 2}});
  scores.backward.clear();
  scores.plain_modules = 1;
  scores.memory.forward = bytes_32 * pairs;
}

// Writes attention's own kernel. It looks at the keys of the document, at those before it in the
// row, or, behind a mask that it is handed, at all of the row.
void LayerWriter::core(std::vector<KernelRow> rows) {
  const Attention& a = model.attention;
  const AttentionKernel kernel = this->kernel();
  if (kernel == AttentionKernel::eager || kernel == AttentionKernel::sdpa_math) {
    core_in_memory(std::move(rows));
    return;
  }
  const AttentionWidths widths = widths_of(a);
  const double q = static_cast<double>(widths.queries), out = static_cast<double>(widths.result);
  double inputs = q + static_cast<double>(widths.keys + widths.values);
  if (stack.repeats_heads && a.kv_heads < a.heads) {
    rows.push_back(count(Operator::repeat_heads, t(), q + (inputs - q) / 2));
    inputs = 3 * q;
  }
  const bool masked =
      kernel == AttentionKernel::sdpa_efficient || (kernel == AttentionKernel::sdpa && load.masked);
  const double keys = masked                            ? load.in_squares
                      : kernel == AttentionKernel::sdpa ? load.in_rows
                                                        : load.attended;
  // Scores and values may have heads of different widths: the kernel's is their mean.
  const double heads = static_cast<double>(a.heads);
  KernelRow row = stepsim::attention("attention", t(), keys / t(), heads, (q + out) / (2 * heads));
  row.bytes = bytes_16 * t() * (inputs + out);
  row.later = kernel == AttentionKernel::flash3;
  rows.push_back(row);
  const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
  Unit& attend = unit(Role::attend, "self_attn.attend", sinks, std::move(rows));
  if (a.latent) attend.part = LayerPart::mla_up_proj;
  KernelRow &forward = attend.forward.back(), &backward = attend.backward.back();
  const Stack::AttentionShares& shares = stack.attention_shares;
  if (masked) {
    forward.share = shares.efficient_forward.number();
    forward.masked = shares.masked_forward.number();
    backward.share = shares.efficient_backward.number();
    backward.masked = shares.masked_backward.number();
  } else if (kernel == AttentionKernel::flex) {
    forward.share = shares.flex_forward.number();
    backward.share = shares.flex_backward.number();
  }
  // The result and a logarithm for each row and head, beside queries, keys and values.
  attend.memory.core = bytes_16 * t() * out + 4 * t() * static_cast<double>(a.heads);
  attend.memory.saved = bytes_16 * t() * inputs + attend.memory.core;
  attend.core_rows = 1;
  // Both generations of the kernel are called with the lengths of sequences.
  if (kernel == AttentionKernel::flash || kernel == AttentionKernel::flash3)
    attend.stops.reads = stack.attention_reads;
  // The flash kernel sums the gradient of its queries in fp32.
  attend.memory.gradient = bytes_16 * t() * inputs;
  attend.memory.backward = 4 * t() * q;
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
  const bool eager = kernel() == AttentionKernel::eager;
  const bool one = fused.activation;  // by a compiler, or as in Megatron, whose kernels are its own
  const double scores = load.in_squares * static_cast<double>(a.heads);
  const double width = eager ? bytes_16 : 4;  // bytes of a score where it is multiplied
  const auto product = [&](double numbers) {
    KernelRow row{"scores", KernelClass::gemm, 2 * numbers * load.in_squares,
                  bytes_16 * 2 * t() * numbers + width * scores, 1};
    // Heads lie behind each other: a width of no multiple of 8 puts all but the first out of line.
    row.unaligned = std::fmod(numbers / static_cast<double>(a.heads), 8) != 0;
    return row;
  };
  if (eager && a.kv_heads < a.heads) rows.push_back(count(Operator::repeat_heads, t(), q + kv / 2));
  rows.push_back(product(q));
  if (a.relative > 0) {
    // Queries and keys are multiplied with those of the distances, which are as wide and made
    // by the same matrices; what is found for a distance goes where tokens are so far apart.
    const double far = static_cast<double>(a.relative), heads = static_cast<double>(a.heads);
    rows.push_back(gemm("distances", far, h(), 2 * q));
    rows.push_back({"distances", KernelClass::gemm, 2 * 2 * t() * q * far,
                    2 * bytes_16 * t() * (q + far * heads), 2});
    rows.push_back(count(Operator::distances, scores));
  }
  rows.push_back(count(!eager ? Operator::softmax_fp32
                       : one  ? Operator::softmax_fused
                              : Operator::softmax,
                       scores));
  const bool drops = model.encoder && model.encoder->drops;
  if (drops) rows.push_back(count(Operator::dropout, scores));
  rows.push_back(product(out));
  const auto core_rows = static_cast<int>(rows.size() - rotation);
  const std::vector<double> sinks(a.sinks ? 1 : 0, static_cast<double>(a.heads));
  Unit& attend = unit(Role::attend, "self_attn.attend", sinks, std::move(rows));
  // Probabilities in 32 bits for the softmax and in 16 for the product, or once for both.
  // Of what dropout leaves of them a byte says which; in 32 bits throughout nothing is cast.
  double kept = (eager ? (one ? bytes_16 : 4 + bytes_16) : 4) + (drops ? 1 : 0);
  if (model.encoder && eager && strategy.precision.whole())
    kept = (drops ? 4 + 1 + 4 : 4) * bytes_16 / strategy.precision.numbers;
  attend.memory.core = kept * scores + (eager && a.kv_heads < a.heads ? 2 * bytes_16 * t() * q : 0);
  attend.memory.saved = bytes_16 * t() * (q + kv) + attend.memory.core;
  attend.core_rows = core_rows;
  attend.memory.gradient = bytes_16 * t() * (q + kv);
  attend.memory.backward = (width + 4) * scores;  // of the probabilities, and of the scores
}

}  // namespace stepsim
