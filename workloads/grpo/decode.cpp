#include "workloads/grpo/decode.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/collectives/plan.hpp"

namespace stepsim {
namespace {

double bytes_of(EngineBits bits) {
  return bits == EngineBits::fp8 ? bytes_16 / 2 : bytes_16;
}

double width(std::int64_t value) {
  return static_cast<double>(value);
}

}  // namespace

void DecodeModel::add_layers(const Model& model, double tp) {
  const Attention& a = model.attention;
  const double h = width(model.hidden), layers = width(model.layers);
  const double q = width(a.heads * a.head_dim), kv = width(a.kv_heads * a.head_dim);
  const auto product = [&](double count, double in, double out) {
    products_.push_back({.count = count,
                         .bytes = weight_width_ * in * out / tp,
                         .flops_per_token = 2 * in * out / tp / speed_up_});
  };
  const double sparse = width(expert_layers(model)), dense = layers - sparse;
  product(layers, h, q + 2 * kv);
  product(layers, q, h);
  const double gated = model.feed_forward.gated ? 2 : 1;
  if (dense > 0) {
    product(dense, h, gated * width(model.feed_forward.width));
    product(dense, width(model.feed_forward.width), h);
  }
  if (model.experts && sparse > 0) {
    const Experts& e = *model.experts;
    const auto expert = [&](double in, double out) {
      products_.push_back({.count = sparse,
                           .bytes = weight_width_ * in * out * width(e.count) / tp,
                           .flops_per_token = 2 * in * out * width(e.per_token) / tp / speed_up_,
                           .experts = width(e.count),
                           .per_token = width(e.per_token)});
    };
    expert(h, 2 * width(e.width));
    expert(width(e.width), h);
    product(sparse, h, width(e.count));
    if (e.shared_width > 0) {
      product(sparse, h, 2 * width(e.shared_width));
      product(sparse, width(e.shared_width), h);
    }
  }
  const double vocabulary = width(model.vocabulary);  // in 16 bits whatever the layers have
  products_.push_back({.count = 1,
                       .bytes = bytes_16 * h * vocabulary / tp,
                       .flops_per_token = 2 * h * vocabulary / tp});
}

DecodeModel::DecodeModel(const Cluster& cluster, const Model& model, const EngineStack& stack,
                         const Grpo& grpo) {
  const Gpu& gpu = cluster.gpu;
  const double tp = width(grpo.tensor_parallel), layers = width(model.layers);
  bandwidth_ = gpu.gemm.bandwidth.value.value * stack.kernels.weights.value.value;
  rate_ =
      gpu.gemm.rate.value.value * gpu.gemm.sustained.value.value * stack.kernels.flops.value.value;
  blend_ = stack.kernels.blend.value.value;
  start_ = gpu.gemm.start.value.value;
  stream_ = gpu.memory.stream.value.value * stack.kernels.cache.value.value;
  fixed_ = stack.host.iteration.value.value + layers * stack.kernels.small.value.value;
  per_sequence_ = stack.host.sequence.value.value;
  weight_width_ = bytes_of(grpo.weights);
  if (grpo.weights == EngineBits::fp8 && gpu.peak.fp8)
    speed_up_ = gpu.peak.fp8->value / gpu.peak.bf16.value;
  if (grpo.enforce_eager)
    host_floor_ = layers * stack.kernels.eager_per_layer.value.value *
                  gpu.host_launch.eager_op.value.value / cluster.node.host.core_speed.value.value;
  add_layers(model, tp);
  for (const Product& p : products_) flops_per_token_ += p.count * p.flops_per_token;

  // Two reductions a layer between the GPUs of an engine, each of a row for every token.
  if (grpo.tensor_parallel > 1) {
    Group group(grpo.tensor_parallel);
    for (Rank r = 0; r < grpo.tensor_parallel; ++r) group[r] = r;
    const double row = bytes_16 * width(model.hidden);
    const CollectivePlan plan = plan_collective(cluster, Collective::all_reduce, {group});
    const Cost& cost = plan.candidates[choose(plan, {64 * row})].cost;
    reduce_fixed_ = 2 * layers * cost.fixed.value;
    reduce_per_token_ = 2 * layers * row * cost.per_byte;
  }

  const Attention& a = model.attention;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    (window_of(model, layer) > 0 ? window_layers_ : full_layers_) += 1;
  window_ = width(a.sliding_window);
  // Fewer heads than GPUs: every GPU keeps a copy of one.
  token_share_ = 1 / std::min(tp, width(a.kv_heads));
  layer_token_bytes_ = 2 * width(a.kv_heads * a.head_dim) * bytes_of(grpo.cache);
  // Scores, and values weighed by them.
  attention_per_pair_ =
      4 * width(a.heads * a.head_dim) / tp / gpu.attention.flash.forward.value.value;
  bytes_per_token_ = layers * layer_token_bytes_;
  const ParameterCount count = count_parameters(model);
  const double outer = width(count.of(TensorClass::embedding));
  weight_bytes_ = (weight_width_ * (width(count.total()) - outer) + bytes_16 * outer) / tp;
  cache_bytes_ = grpo.memory_utilization * gpu.memory.capacity.value.value - weight_bytes_ -
                 stack.memory.overhead.value.value;
}

double DecodeModel::capacity() const {
  return std::max(0.0, std::floor(cache_bytes_ / (bytes_per_token_ * token_share_)));
}

// All products of an iteration over `tokens` rows.
double DecodeModel::products(double tokens) const {
  const auto place = static_cast<std::size_t>(tokens);
  const bool whole = static_cast<double>(place) == tokens && place < 8192;
  if (whole && place < known_.size() && known_[place] > 0) return known_[place];
  double time = 0;
  for (const Product& p : products_) {
    double bytes = p.bytes;
    if (p.experts > 0)  // those that at least one token meets
      bytes *= 1 - std::pow(1 - p.per_token / p.experts, tokens);
    const double read = bytes / bandwidth_, computed = tokens * p.flops_per_token / rate_;
    const double larger = std::max(read, computed), smaller = std::min(read, computed);
    time +=
        p.count * (start_ + larger * std::pow(1 + std::pow(smaller / larger, blend_), 1 / blend_));
  }
  if (whole) {
    if (known_.size() <= place) known_.resize(place + 1, 0);
    known_[place] = time;
  }
  return time;
}

double DecodeModel::reads(double sequences, double cached) const {
  const double windowed = window_ > 0 ? std::min(cached, sequences * window_) : cached;
  return (full_layers_ * cached + window_layers_ * windowed) * layer_token_bytes_ * token_share_;
}

double DecodeModel::iteration(double sequences, double cached) const {
  if (free_) return 0;
  const double device = products(sequences) + reads(sequences, cached) / stream_ + reduce_fixed_ +
                        reduce_per_token_ * sequences;
  return std::max(device, host_floor_) + fixed_ + per_sequence_ * sequences;
}

double DecodeModel::per_cached(double sequences, double cached) const {
  if (free_) return 0;
  const bool all = window_ <= 0 || cached < sequences * window_;
  return (full_layers_ + (all ? window_layers_ : 0)) * layer_token_bytes_ * token_share_ / stream_;
}

double DecodeModel::prefill(double tokens, double pairs) const {
  if (free_) return 0;
  return tokens * (flops_per_token_ / rate_ + reduce_per_token_) + pairs * attention_per_pair_;
}

double DecodeModel::pairs_of(double tokens) const {
  const double all = tokens * tokens / 2;
  const bool cut = window_ > 0 && tokens > window_;
  return full_layers_ * all +
         window_layers_ * (cut ? tokens * window_ - window_ * window_ / 2 : all);
}

}  // namespace stepsim
