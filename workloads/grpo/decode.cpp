#include "workloads/grpo/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "workloads/collectives/plan.hpp"
#include "workloads/layers/units.hpp"
#include "workloads/model/mixers.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/model/role_facts.hpp"

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
  const Role first = facts_of(role).first;
  return first == Role::none ? role : first;
}

// Returns whether every GPU has it whole, as it has the way down to the narrow vectors of latent
// attention.
bool is_whole(Role role) {
  return together_with(role) == Role::narrow_query;
}

// Returns whether every GPU has the part whole: with sequences of its own all but the experts.
bool is_whole(const Part& part, bool by_sequence) {
  return is_whole(part.role) || (by_sequence && part.kind != TensorClass::expert);
}

// Counts the blocks behind what mixes tokens: feed-forward, of experts or not.
std::int64_t following_blocks(const Model& model) {
  return feed_forward_layers(model) + expert_layers(model);
}

std::int64_t blocks_of(const Model& model) {
  return attention_layers(model) + mixer_layers(model) + following_blocks(model);
}

// Returns what the widest of a layer's blocks holds while so many tokens go through it: what comes
// in, its sum with what came before and its norm, then both halves of what is multiplied, and their
// product.
double widest_block(const Model& model, double tokens, double gpus) {
  const auto between = [](std::int64_t wide, bool gated) {
    return width(gated ? 3 : 2) * width(wide);
  };
  double block = between(model.feed_forward.width, model.feed_forward.gated) / gpus;
  if (model.experts) {
    const Experts& e = *model.experts;
    // The result of each expert goes where its input's product was.
    const double product = width(e.gated ? 2 : 1) * width(e.width) / gpus;
    block = std::max(block, width(e.per_token) *
                                (std::max(product, width(model.hidden)) + width(e.width) / gpus));
  }
  return bytes_16 * tokens * (3 * width(model.hidden) + block);
}

// Kept free for the largest step, as a run of it before the cache is made says.
double profiled_bytes(const Model& model, const EngineStack::Memory& memory, const Grpo& grpo) {
  if (!memory.profiled) return 0;
  const double tokens = width(grpo.batched_tokens), gpus = width(grpo.tensor_parallel),
               sampled = std::min(tokens, width(grpo.batched_sequences));
  const double logits = bytes_16 * tokens * width(model.hidden) +
                        sampled * width(model.vocabulary) * memory.logits.number();
  const double other = (gpus > 1 ? memory.communication.number() : 0) +
                       (grpo.enforce_eager ? 0 : memory.graphs.number());
  return std::max(widest_block(model, tokens, gpus), logits) + other;
}

double whole_weights(const Model& model, bool by_sequence) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Part& part : layer_parts(model, layer))
      if (is_whole(part, by_sequence)) sum += width(part.elements());
  return sum;
}

}  // namespace

void DecodeModel::add_products(const Model& model, double tp) {
  struct Sum {
    double count = 0, weights = 0, experts = 0, per_token = 0;
    bool whole = false;
  };
  std::map<Role, Sum> sums;
  const auto add = [&](const std::vector<Part>& parts, std::int64_t count) {
    std::map<Role, Sum> once;
    for (const Part& part : parts) {
      if (!part.multiplies() || part.role == Role::convolution) continue;
      Sum& sum = once[together_with(part.role)];
      sum.weights += width(part.weights());
      sum.whole = is_whole(part, batches_ > 1) && part.role != Role::head;
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
    const double gpus = sum.whole ? 1 : tp;
    const double stored = sum.weights * std::max(1.0, sum.experts);
    const double met = sum.weights * std::max(1.0, sum.per_token);
    products_.push_back({.count = sum.count,
                         .bytes = (narrow ? weight_width_ : bytes_16) * stored / gpus,
                         .flops_per_token = 2 * met / gpus / (narrow ? speed_up_ : 1),
                         .experts = sum.experts,
                         .per_token = sum.per_token,
                         .head = role == Role::head});
  }
}

std::vector<std::string> unshared(const Model& model, std::int64_t gpus) {
  std::vector<std::string> list;
  const auto divides = [&](std::int64_t whole, std::string_view what, std::string_view of) {
    if (whole % gpus != 0)
      list.push_back(fmt::format("{} does not divide the {} {} of {}", gpus, whole, what, of));
  };
  const Attention& a = model.attention;
  divides(a.heads, "heads", model.name);
  if (!a.latent && a.kv_heads % gpus != 0 && gpus % a.kv_heads != 0)
    list.push_back(
        fmt::format("{} neither divides the {} key-value heads of {} nor is a multiple of them",
                    gpus, a.kv_heads, model.name));
  if (!model.mixer) return list;
  const Mixer& mixer = *model.mixer;
  const std::string states = fmt::format("{} in {}", mixer_name(mixer), model.name);
  divides(mixer.heads > 1 ? mixer.heads : mixer.channels(), mixer.heads > 1 ? "heads" : "channels",
          states);
  if (mixer.groups > 1) divides(mixer.groups, "groups of heads", states);
  return list;
}

DecodeModel::DecodeModel(const Cluster& cluster, const Model& model, const EngineStack& stack,
                         const Grpo& grpo) {
  const Gpu& gpu = cluster.gpu;
  const EngineStack::Kernels& kernels = stack.kernels;
  const double tp = width(grpo.tensor_parallel);
  bandwidth_ = gpu.gemm.bandwidth.number() * kernels.weights.number();
  rate_ = gpu.gemm.rate.number() * gpu.gemm.sustained.number() * kernels.flops.number();
  stretch_ = stack.unexplained.number();
  blend_ = kernels.blend.number();
  start_ = gpu.gemm.start.number();
  stream_ = gpu.memory.stream.number() * kernels.cache.number();
  expert_rates_ = gpu.attention.later ? kernels.experts_later : kernels.experts;
  weight_width_ = bytes_of(grpo.weights);
  if (grpo.weights == EngineBits::fp8 && gpu.peak.fp8)
    speed_up_ = kernels.fp8.number() * gpu.peak.fp8->value / gpu.peak.bf16.value;
  add_host(cluster, model, stack, grpo);
  if (stack.attention_by_sequence && model.experts) batches_ = grpo.tensor_parallel;
  add_products(model, tp);
  add_reductions(cluster, model, stack.reduction, grpo.tensor_parallel);
  add_attention(model, gpu, stack, grpo);
  add_room(model, gpu, stack, grpo);
  if (mixer_layers(model) > 0) {
    add_mixers(cluster, model, stack, grpo, batches_ > 1 ? 1 : tp);
    add_cache(model, stack);
  }
}

void DecodeModel::add_attention(const Model& model, const Gpu& gpu, const EngineStack& stack,
                                const Grpo& grpo) {
  const double tp = width(grpo.tensor_parallel), over = batches_ > 1 ? 1 : tp;
  const Attention& a = model.attention;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (kind_of(model, layer).attends())
      (window_of(model, layer) > 0 ? window_layers_ : full_layers_) += 1;
  window_ = width(a.sliding_window);
  const CachedToken token = cached_token_of(a);
  // Fewer heads than GPUs: every GPU keeps a copy of one, unless each has sequences of its own.
  token_share_ = 1 / (batches_ > 1 ? tp : std::min(tp, width(token.heads)));
  const bool narrow_reads = !gpu.attention.later && gpu.vendor == "nvidia" && !a.latent;
  copies_ = stack.copies_cache ? 2 : 0;
  if (stack.repeats_heads && !a.latent && a.heads > a.kv_heads) {
    readers_ = width(a.heads) / width(a.kv_heads);
    copies_ += 1 + readers_;
  }
  if (narrow_reads && stack.mixed_reads == MixedReads::per_query_head)
    mixed_readers_ = std::max(1.0, width(a.heads) / tp / std::max(1.0, width(token.heads) / tp));
  layer_token_bytes_ = width(token.numbers) * bytes_of(grpo.cache);
  copied_layer_ = copies_ > 0 ? readers_ * layer_token_bytes_ : 0;
  logits_row_ = width(model.vocabulary) * stack.memory.logits.number();
  // Scores, and values weighed by them: of a prompt with keys and values of their own.
  const AttentionWidths widths = widths_of(a);
  const Gpu::Attention::Kernel& prompts =
      gpu.attention.later ? *gpu.attention.later : gpu.attention.flash;
  own_share_ = batches_ > 1 ? 1 : token_share_;
  attention_per_pair_ = 2 * width(widths.queries + widths.result) / over / prompts.forward.number();
  attention_per_cached_ = 2 * width(token.products) / over / gpu.attention.flash.forward.number();
  bytes_per_token_ = width(attention_layers(model)) * layer_token_bytes_;
}

void DecodeModel::add_room(const Model& model, const Gpu& gpu, const EngineStack& stack,
                           const Grpo& grpo) {
  const ParameterCount count = count_parameters(model);
  const double tp = width(grpo.tensor_parallel), outer = width(count.of(TensorClass::embedding)),
               whole = whole_weights(model, batches_ > 1);
  weight_bytes_ = (weight_width_ * (width(count.total()) - outer - whole) + bytes_16 * outer) / tp +
                  weight_width_ * whole;
  if (stack.own_weights) weight_bytes_ = 0;  // of a learner's, which are there
  const double capacity = gpu.memory.capacity.number(), share = grpo.memory_utilization,
               kept = weight_bytes_ + stack.memory.overhead.number() +
                      profiled_bytes(model, stack.memory, grpo);
  cache_bytes_ = stack.memory.of_free ? share * (capacity - kept) : share * capacity - kept;
  block_ = stack.memory.block.number();
}

// States are read and written for every token of an answer; prompts go through in chunks, as they
// do when they are trained on.
void DecodeModel::add_mixers(const Cluster& cluster, const Model& model, const EngineStack& stack,
                             const Grpo& grpo, double gpus) {
  mixers_ = width(mixer_layers(model));
  Mixer mixer = *model.mixer;
  mixer.wide_state = mixer.wide_state || stack.mixers.wide;
  state_bytes_ = mixers_ * stepsim::state_bytes(mixer, gpus);
  if (grpo.prefix_caching) states_kept_ = stack.mixers.found.number();
  Stack kernels;
  kernels.fused.norm = true;
  kernels.mixers = stack.mixers.rates;
  kernels.operators = stack.mixers.operators;
  for (Constant<Ratio>* share : {&kernels.kernels.gemm, &kernels.kernels.memory})
    share->value = {1};
  const auto seconds = [&](double tokens) {
    return mixers_ *
           device_time(cluster.gpu, kernels, mixer_kernels(model, kernels, tokens), false).value;
  };
  mix_start_ = seconds(0);
  constexpr double many = 1 << 20;
  mix_per_token_ = (seconds(many) - mix_start_) / many / gpus;
}

// Adds the cache, which states share with keys and values.
void DecodeModel::add_cache(const Model& model, const EngineStack& stack) {
  const double attend = width(attention_layers(model)), states = states_kept_ * state_bytes_;
  if (stack.mixers.states == StatePlace::pool) {
    pool_bytes_ = stack.mixers.share.number() * cache_bytes_;
    cache_bytes_ -= pool_bytes_;
    pooled_ = true;
    return;
  }
  if (attend == 0) return;
  const double token = layer_token_bytes_ * own_share_;  // of a layer, on the GPU that has it
  if (stack.mixers.states == StatePlace::rows) {
    state_blocks_ = std::llround(std::ceil(states / (block_ * attend * token)));
    return;
  }
  // Blocks have as many layers as the rarer kind has, or, where the other is not much more, as that
  // one: what is missing in a block's last layers is left empty.
  const double fewer = std::min(attend, mixers_), more = std::max(attend, mixers_);
  const double layers = more < stack.mixers.padded.number() * fewer ? more : fewer;
  block_ *= std::max(1.0, std::ceil(state_bytes_ / mixers_ / (block_ * token)));
  const double of_tokens = std::ceil(attend / layers);
  state_blocks_ = std::llround(std::ceil(states_kept_ * std::ceil(mixers_ / layers) / of_tokens));
  bytes_per_token_ = of_tokens * layers * layer_token_bytes_;
}

// Adds what the host spends on a step, and kernels so small that their number counts.
void DecodeModel::add_host(const Cluster& cluster, const Model& model, const EngineStack& stack,
                           const Grpo& grpo) {
  const Gpu& gpu = cluster.gpu;
  const EngineStack::Kernels& kernels = stack.kernels;
  // Some layers have but one block: half of one that has two.
  const double layers = width(blocks_of(model)) / 2, sparse = width(expert_layers(model)),
               latent = model.attention.latent ? width(attention_layers(model)) : 0,
               mixers = width(mixer_layers(model));
  fixed_ = stack.host.iteration.number();
  small_ = layers * kernels.small.number() + sparse * kernels.small_experts.number() +
           latent * kernels.small_latent.number() + mixers * stack.mixers.small.number();
  if (grpo.tensor_parallel > cluster.gpus_per_node()) fixed_ += stack.host.nodes.number();
  per_sequence_ = stack.host.sequence.number();
  if (grpo.enforce_eager) {
    const EngineStack::Eager& eager = stack.eager;
    const double launches = layers * eager.kernels.number() + sparse * eager.experts.number() +
                            latent * eager.latent.number() + mixers * stack.mixers.kernels.number();
    const double reductions = grpo.tensor_parallel > 1 ? 2 * eager.reduction.number() : 0;
    const double each = gpu.host_launch.eager_op.number() + eager.python.number();
    host_floor_ = (launches * each + layers * reductions) / cluster.node.host.core_speed.number();
  } else {
    graph_step_ = stack.graphs.step.number();
    graph_largest_ = stack.graphs.largest.number();
    graph_answers_ = stack.graphs.answers;
  }
}

// Adds a reduction behind each block, two in most layers, each of a row for every token. What is
// fastest depends on their size.
void DecodeModel::add_reductions(const Cluster& cluster, const Model& model,
                                 const EngineStack::Reduction& own, std::uint32_t gpus) {
  if (gpus < 2) return;
  Group group(gpus);
  for (Rank r = 0; r < gpus; ++r) group[r] = r;
  // Sequences of its own: rows of all are collected before the experts, and their sums dealt out.
  const double row = bytes_16 * width(model.hidden),
               count = width(batches_ > 1 ? following_blocks(model) : blocks_of(model));
  const CollectivePlan plan = plan_collective(cluster, Collective::all_reduce, {group});
  const auto reduction = [&](Seconds fixed, const Cost& cost, double most) {
    reductions_.push_back({count * fixed.value, count * row * cost.per_byte, most});
  };
  for (const Candidate& each : plan.candidates)
    reduction(each.cost.fixed, each.cost, std::numeric_limits<double>::infinity());
  // Engines map each other's memory within a node only.
  if (gpus > cluster.gpus_per_node()) return;
  const Bytes largest = own.largest.value;
  reduction(own.start.value, plan.candidates[choose(plan, largest)].cost, largest.value / row);
}

double DecodeModel::reductions(double rows) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Reduction& each : reductions_)
    if (rows <= each.most) least = std::min(least, each.fixed + each.per_row * rows);
  return reductions_.empty() ? 0 : least;
}

double DecodeModel::capacity() const {
  return std::max(0.0, std::floor(cache_bytes_ / (bytes_per_token_ * token_share_)));
}

double DecodeModel::taken_by(double tokens) const {
  if (state_blocks_ == 0) return tokens;
  return block_ * (std::ceil(tokens / block_) + width(state_blocks_));
}

double DecodeModel::most_sequences() const {
  if (!pooled_) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::floor(pool_bytes_ / (states_kept_ * state_bytes_)));
}

// Between two sizes that are known the logarithms are interpolated.
double DecodeModel::expert_share(double tokens_each) const {
  if (expert_rates_.empty()) return 1;
  const auto above = std::ranges::find_if(
      expert_rates_, [&](const auto& rate) { return rate.tokens >= tokens_each; });
  if (above == expert_rates_.begin()) return above->share.number();
  const auto below = std::prev(above);
  if (above == expert_rates_.end()) return below->share.number();
  const double place =
      std::log(tokens_each / below->tokens) / std::log(above->tokens / below->tokens);
  return below->share.number() * std::pow(above->share.number() / below->share.number(), place);
}

double DecodeModel::product(const Product& p, double rows) const {
  double bytes = p.bytes, rate = rate_;
  if (p.experts > 0) {  // those that at least one token meets
    const double met = 1 - std::pow(1 - p.per_token / p.experts, rows);
    bytes *= met;
    rate *= expert_share(rows * p.per_token / (p.experts * met));
  }
  const double read = bytes / bandwidth_, computed = rows * p.flops_per_token / rate;
  const double larger = std::max(read, computed), smaller = std::min(read, computed);
  return p.count * (start_ + larger * std::pow(1 + std::pow(smaller / larger, blend_), 1 / blend_));
}

namespace {

// A value for each number of rows, kept once it was asked for.
template <class Make>
double once(std::vector<double>& known, double rows, const Make& make) {
  constexpr std::size_t most = 1 << 15;
  const auto place = static_cast<std::size_t>(rows);
  if (static_cast<double>(place) != rows || place >= most) return make();
  if (known.size() <= place) known.resize(place + 1, -1);
  if (known[place] < 0) known[place] = make();
  return known[place];
}

}  // namespace

double DecodeModel::products(double rows) const {
  return once(products_of_, rows, [&] {
    double time = reductions(rows);
    for (const Product& p : products_)
      if (!p.head) time += product(p, rows);
    return time;
  });
}

double DecodeModel::own_products(double rows) const {
  return once(own_of_, rows, [&] {
    double time = 0;
    for (const Product& p : products_)
      if (!p.head && p.experts == 0) time += product(p, rows);
    return time;
  });
}

double DecodeModel::expert_products(double rows) const {
  return once(experts_of_, rows, [&] {
    double time = reductions(rows);
    for (const Product& p : products_)
      if (p.experts > 0) time += product(p, rows);
    return time;
  });
}

double DecodeModel::head(double rows) const {
  if (rows <= 0) return 0;
  return once(head_of_, rows, [&] {
    double time = 0;
    for (const Product& p : products_)
      if (p.head) time += product(p, rows);
    return time;
  });
}

// Graphs were captured for some sizes; a batch takes the next larger one.
double DecodeModel::padded(double tokens, bool prompts) const {
  if (!graph_answers_.empty()) {
    const auto next = std::ranges::lower_bound(graph_answers_, tokens);
    return prompts || next == graph_answers_.end() ? tokens : *next;
  }
  if (tokens >= graph_largest_) return tokens;
  if (tokens <= graph_step_ / 2) return std::exp2(std::ceil(std::log2(std::max(1.0, tokens))));
  return graph_step_ * std::ceil(tokens / graph_step_);
}

double DecodeModel::looked_at(double sequences, double cached) const {
  const double windowed = window_ > 0 ? std::min(cached, sequences * window_) : cached;
  return full_layers_ * cached + window_layers_ * windowed;
}

// Returns the time of attention. What is cached is read once for all heads that share it, or by
// each of them. Latent vectors are shared by all, so their products may take longer than their
// reading.
double DecodeModel::attend(double looked_at, double readers) const {
  const double passed = looked_at * layer_token_bytes_ * own_share_ / stream_;
  return std::max(readers * passed, looked_at * attention_per_cached_) + copies_ * passed;
}

// A new token finds a state for each sequence and leaves another one; there is little arithmetic.
double DecodeModel::mix(const StepBatch& b) const {
  if (mixers_ <= 0) return 0;
  const double prompts = b.prompt > 0 ? mix_start_ + b.prompt * mix_per_token_ : 0;
  return b.decoding * 2 * state_bytes_ / stream_ + prompts;
}

// Returns the time that a GPU takes for its own sequences.
double DecodeModel::own_time(const StepBatch& b, double padded_rows) const {
  const double readers = b.prompt > 0 ? mixed_readers_ : 1;
  return small_ + own_products(padded_rows) + head(b.decoding + b.sampled) +
         attend(looked_at(b.decoding, b.cached), readers) + b.pairs * attention_per_pair_ + mix(b);
}

double DecodeModel::step(std::span<const StepBatch> ranks) const {
  if (ranks.size() == 1) return step(ranks.front());
  if (free_) return 0;
  double slowest = 0, rows = 0, sequences = 0, most = 0;
  bool prompts = false;
  for (const StepBatch& b : ranks) {
    most = std::max(most, b.decoding + b.prompt);
    prompts = prompts || b.prompt > 0;
  }
  for (const StepBatch& b : ranks) {
    // All take the graph that the largest batch needs, or none does.
    const bool together = !graph_answers_.empty() && !prompts;
    const double own = padded(together ? most : b.decoding + b.prompt, prompts);
    slowest = std::max(slowest, own_time(b, own));
    rows += own;
    sequences = std::max(sequences, b.decoding + b.sampled);
  }
  return stretch_ * (std::max(slowest + expert_products(rows), host_floor_) + fixed_ +
                     per_sequence_ * sequences);
}

double DecodeModel::step(const StepBatch& b) const {
  if (free_) return 0;
  if (batches_ > 1) {
    const double each = 1 / static_cast<double>(batches_);
    const StepBatch part{.decoding = b.decoding * each,
                         .cached = b.cached * each,
                         .prompt = b.prompt * each,
                         .pairs = b.pairs * each,
                         .sampled = b.sampled * each};
    return step(std::vector<StepBatch>(static_cast<std::size_t>(batches_), part));
  }
  return stretch_ * one_step(b);
}

double DecodeModel::generating_bytes(double rows, double tokens) const {
  return rows * (tokens * (bytes_per_token_ + copied_layer_) + state_bytes_ + logits_row_);
}

StepParts DecodeModel::parts(const StepBatch& b) const {
  const PassTime pass = pass_(b.decoding + b.prompt);  // with the attention of prompts
  const double cache = attend(looked_at(b.decoding, b.cached), readers_) + mix(b);
  return {.launches = std::max(0.0, pass.all - pass.device - cache),
          .passes = pass.device,
          .cache = cache,
          .between = fixed_ + per_sequence_ * (b.decoding + b.sampled)};
}

double DecodeModel::one_step(const StepBatch& b) const {
  if (pass_) return parts(b).all();
  const double readers = b.prompt > 0 ? mixed_readers_ : 1;
  const double device = small_ + products(padded(b.decoding + b.prompt, b.prompt > 0)) +
                        head(b.decoding + b.sampled) +
                        attend(looked_at(b.decoding, b.cached), readers) +
                        b.pairs * attention_per_pair_ + mix(b);
  return std::max(device, host_floor_) + fixed_ + per_sequence_ * (b.decoding + b.sampled);
}

double DecodeModel::iteration(double sequences, double cached) const {
  return step({.decoding = sequences, .cached = cached});
}

// Within one the time grows evenly with the context; the next one begins where a window is full, or
// where the device takes longer than the host or the pace.
int DecodeModel::regime(double sequences, double cached, double pace) const {
  const double time = iteration(sequences, cached);
  const double host = pass_ ? pass_(sequences).all : host_floor_;
  const double floor = stretch_ * (host + fixed_ + per_sequence_ * sequences);
  return (window_ > 0 && cached >= sequences * window_ ? 1 : 0) + (time > floor ? 2 : 0) +
         (time > pace ? 4 : 0);
}

double DecodeModel::steps(double sequences, double cached, std::int64_t count, double pace) const {
  const auto at = [&](std::int64_t step) { return cached + sequences * static_cast<double>(step); };
  double sum = 0;
  for (std::int64_t from = 0; from < count;) {
    const int begun = regime(sequences, at(from), pace);
    std::int64_t low = from, high = count - 1;
    // Most blocks end in the regime of their beginning.
    if (regime(sequences, at(high), pace) == begun) low = high;
    while (low < high) {
      const std::int64_t middle = high - (high - low) / 2;
      if (regime(sequences, at(middle), pace) == begun)
        low = middle;
      else
        high = middle - 1;
    }
    const double mean = (at(from) + at(low)) / 2;
    sum += static_cast<double>(low - from + 1) * std::max(iteration(sequences, mean), pace);
    from = low + 1;
  }
  return sum;
}

double DecodeModel::per_cached(double sequences, double cached) const {
  if (free_) return 0;
  const bool all = window_ <= 0 || cached < sequences * window_;
  return stretch_ * attend(full_layers_ + (all ? window_layers_ : 0), readers_);
}

double DecodeModel::pairs_of(double tokens) const {
  const double all = tokens * tokens / 2;
  const bool cut = window_ > 0 && tokens > window_;
  return full_layers_ * all +
         window_layers_ * (cut ? tokens * window_ - window_ * window_ / 2 : all);
}

}  // namespace stepsim
