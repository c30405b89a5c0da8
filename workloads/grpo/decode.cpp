#include "workloads/grpo/decode.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/collectives/plan.hpp"
#include "workloads/model/parts.hpp"

namespace stepsim {
namespace {

double bytes_of(EngineBits bits) {
  return bits == EngineBits::fp8 ? bytes_16 / 2 : bytes_16;
}

double width(std::int64_t value) {
  return static_cast<double>(value);
}

// Engines multiply at once what has the same input: the first of the matrices that go together.
Role together_with(Role role) {
  switch (role) {
    case Role::key:
    case Role::value:
    case Role::query_key_value:
      return Role::query;
    case Role::latent:
      return Role::narrow_query;
    case Role::up:
    case Role::gate_up:
      return Role::gate;
    case Role::expert_up:
    case Role::expert_gate_up:
      return Role::expert_gate;
    case Role::shared_up:
      return Role::shared_gate;
    default:
      return role;
  }
}

// Down to the narrow vectors of latent attention, whole on every GPU.
bool is_whole(Role role) {
  return together_with(role) == Role::narrow_query;
}

// Of the layers what every GPU has whole.
double whole_weights(const Model& model) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Part& part : layer_parts(model, layer))
      if (is_whole(part.role)) sum += width(part.elements());
  return sum;
}

}  // namespace

void DecodeModel::add_products(const Model& model, double tp) {
  struct Sum {
    double count = 0, weights = 0, experts = 0, per_token = 0;
  };
  std::map<Role, Sum> sums;
  const auto add = [&](const std::vector<Part>& parts, std::int64_t count) {
    std::map<Role, Sum> once;
    for (const Part& part : parts) {
      if (!part.multiplies()) continue;
      Sum& sum = once[together_with(part.role)];
      sum.weights += width(part.weights());
      if (part.kind != TensorClass::expert) continue;
      sum.experts = width(part.copies);
      sum.per_token = width(model.experts->per_token);
    }
    for (auto& [role, sum] : once) {
      sum.count = sums[role].count + width(count);
      sums[role] = sum;
    }
  };
  for (const AlikeLayers& alike : alike_layers(model))
    add(layer_parts(model, alike.first), alike.count);
  add(outer_parts(model), 1);
  for (const auto& [role, sum] : sums) {
    // The head stays in 16 bits whatever the layers have.
    const bool narrow = role != Role::head;
    const double gpus = is_whole(role) ? 1 : tp;
    const double stored = sum.weights * std::max(1.0, sum.experts);
    const double met = sum.weights * std::max(1.0, sum.per_token);
    products_.push_back({.count = sum.count,
                         .bytes = (narrow ? weight_width_ : bytes_16) * stored / gpus,
                         .flops_per_token = 2 * met / gpus / (narrow ? speed_up_ : 1),
                         .experts = sum.experts,
                         .per_token = sum.per_token});
  }
}

DecodeModel::DecodeModel(const Cluster& cluster, const Model& model, const EngineStack& stack,
                         const Grpo& grpo) {
  const Gpu& gpu = cluster.gpu;
  const double tp = width(grpo.tensor_parallel), layers = width(model.layers);
  bandwidth_ = gpu.gemm.bandwidth.number() * stack.kernels.weights.number();
  rate_ = gpu.gemm.rate.number() * gpu.gemm.sustained.number() * stack.kernels.flops.number();
  blend_ = stack.kernels.blend.number();
  start_ = gpu.gemm.start.number();
  stream_ = gpu.memory.stream.number() * stack.kernels.cache.number();
  fixed_ = stack.host.iteration.number() + layers * stack.kernels.small.number();
  per_sequence_ = stack.host.sequence.number();
  weight_width_ = bytes_of(grpo.weights);
  if (grpo.weights == EngineBits::fp8 && gpu.peak.fp8)
    speed_up_ = gpu.peak.fp8->value / gpu.peak.bf16.value;
  if (grpo.enforce_eager)
    host_floor_ = layers * stack.kernels.eager_per_layer.number() *
                  gpu.host_launch.eager_op.number() / cluster.node.host.core_speed.number();
  add_products(model, tp);
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
  const CachedToken token = cached_token_of(a);
  // Fewer heads than GPUs: every GPU keeps a copy of one.
  token_share_ = 1 / std::min(tp, width(token.heads));
  layer_token_bytes_ = width(token.numbers) * bytes_of(grpo.cache);
  // Scores, and values weighed by them: of a prompt with keys and values of their own.
  const AttentionWidths widths = widths_of(a);
  const double flops = gpu.attention.flash.forward.number();
  attention_per_pair_ = 2 * width(widths.queries + widths.result) / tp / flops;
  attention_per_cached_ = 2 * width(token.products) / tp / flops;
  bytes_per_token_ = layers * layer_token_bytes_;
  const ParameterCount count = count_parameters(model);
  const double outer = width(count.of(TensorClass::embedding)), whole = whole_weights(model);
  weight_bytes_ = (weight_width_ * (width(count.total()) - outer - whole) + bytes_16 * outer) / tp +
                  weight_width_ * whole;
  cache_bytes_ = grpo.memory_utilization * gpu.memory.capacity.number() - weight_bytes_ -
                 stack.memory.overhead.number();
}

double DecodeModel::capacity() const {
  return std::max(0.0, std::floor(cache_bytes_ / (bytes_per_token_ * token_share_)));
}

// All products of an iteration over `tokens` rows.
double DecodeModel::products(double tokens) const {
  const auto place = static_cast<std::size_t>(tokens);
  const bool whole = static_cast<double>(place) == tokens && place < 8192;
  if (whole && place < products_of_.size() && products_of_[place] > 0) return products_of_[place];
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
    if (products_of_.size() <= place) products_of_.resize(place + 1, 0);
    products_of_[place] = time;
  }
  return time;
}

double DecodeModel::looked_at(double sequences, double cached) const {
  const double windowed = window_ > 0 ? std::min(cached, sequences * window_) : cached;
  return full_layers_ * cached + window_layers_ * windowed;
}

// What is cached is read once for all heads that share it. Latent vectors are shared by all, so
// their products may take longer than their reading.
double DecodeModel::attend(double looked_at) const {
  return std::max(looked_at * layer_token_bytes_ * token_share_ / stream_,
                  looked_at * attention_per_cached_);
}

double DecodeModel::iteration(double sequences, double cached) const {
  if (free_) return 0;
  const double device = products(sequences) + attend(looked_at(sequences, cached)) + reduce_fixed_ +
                        reduce_per_token_ * sequences;
  return std::max(device, host_floor_) + fixed_ + per_sequence_ * sequences;
}

double DecodeModel::per_cached(double sequences, double cached) const {
  if (free_) return 0;
  const bool all = window_ <= 0 || cached < sequences * window_;
  return attend(full_layers_ + (all ? window_layers_ : 0));
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
