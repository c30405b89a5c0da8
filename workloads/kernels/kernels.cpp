#include "workloads/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stepsim {
namespace {

// A product is cut into tiles that the units of the GPU work off in waves; the last wave may be
// nearly empty. Filling and draining a tile costs as much as some more of its depth. Tiles of
// grouped kernels may wait for what each of them reads.
double product_time(const Gpu& gpu, const Operators::Product& library, const KernelRow& row,
                    double rate, double faster) {
  // Filling a tile waits for memory: it takes as long where the depth behind it takes less.
  const double units = gpu.units, fill = gpu.gemm.fill.number() * std::max(1.0, faster);
  const double started = row.ragged ? 0.5 : 0;  // a group's last tile is half full in the mean
  double best = std::numeric_limits<double>::infinity();
  const bool grouped = row.kind == KernelClass::grouped_gemm;
  const Gpu::Gemm::Grouped* own = grouped && gpu.gemm.grouped ? &*gpu.gemm.grouped : nullptr;
  for (const Tile& tile : own != nullptr ? own->tiles : library.tiles) {
    const double area = tile.rows * tile.width;
    const double share = area > 128 * 128 ? 1 : gpu.gemm.small_tile.number();
    const double high = started > 0 ? std::max(1.0, row.rows / tile.rows + started)
                                    : std::ceil(row.rows / tile.rows);
    const double count = row.groups * high * std::ceil(row.width / tile.width);
    const double read = bytes_of(row.type) * count * (tile.rows + tile.width) * row.depth;
    const double waiting = own != nullptr ? read / own->operands.number() : 0;
    for (int cuts = 1; cuts <= static_cast<int>(library.most_cuts); cuts *= 2) {
      const double cut = cuts;
      // Grouped kernels leave the depth whole: what is summed over all tokens is.
      if (cut > 1 && (grouped || row.depth / cut < library.shortest_cut)) break;
      const double waves = std::ceil(count * cut / units);
      const double partial =
          cut > 1 ? 8 * cut * row.groups * row.rows * row.width : 0;  // written, then added
      const double busy = waves * 2 * area * (row.depth / cut + fill) * units / (rate * share) +
                          partial / gpu.gemm.bandwidth.number();
      best = std::min(best, std::max(busy, waiting));
    }
  }
  return best;
}

// PyTorch hands masks of pairs to cuDNN where it prefers that to its own kernels.
bool masks_later(const Gpu& gpu) {
  return gpu.vendor == "nvidia" && gpu.attention.later;
}

// Blocks on the diagonal are computed in full, rows of scores cost the same however wide the heads
// are, and at the end units wait for those that still work on the longest blocks. The stated rates
// are those of 16 heads of 128 over 16384 tokens in causal rows of 4096.
double attention_rate(const Gpu& gpu, const KernelRow& row, bool backward) {
  const bool later = row.masked > 0 ? masks_later(gpu) : row.later && gpu.attention.later;
  const Gpu::Attention::Kernel& kernel = later ? *gpu.attention.later : gpu.attention.flash;
  const double share = later && row.masked > 0 ? row.masked : row.share;
  const double stated = share * (backward ? kernel.backward : kernel.forward).number();
  const double overhead =
      (backward ? kernel.backward_overhead : kernel.forward_overhead).number() / 2;
  const double beside = gpu.attention.head_overhead.number();
  const bool own = backward && kernel.backward_tail;
  const double waiting = (own ? *kernel.backward_tail : gpu.attention.tail).number() * gpu.units;
  const auto filled = [](double work, double more) { return work / (work + more); };
  constexpr double keys = 2048, head = 128, queries = 16 * 16384;
  double rate = stated;
  if (row.depth > 0) rate *= filled(row.depth, overhead) / filled(keys, overhead);
  if (row.width > 0 && row.width <= head)
    rate *= filled(row.width, beside) / filled(head, beside);
  else if (row.width > 0)
    rate *= std::pow(kernel.wide.number(), std::min(1.0, std::log2(row.width / head)));
  if (row.rows > 0) rate *= filled(row.rows * row.groups, waiting) / filled(queries, waiting);
  return rate;
}

// The longer a kernel runs, the more of it runs at the clocks that the board's power sustains.
double at_settled_clocks(const Gpu& gpu, double time) {
  const auto& settling = gpu.attention.settling;
  if (!settling) return time;
  const double settled = 1 - std::exp(-time / settling->time.number());
  return time / (1 - (1 - settling->share.number()) * settled);
}

double arithmetic_time(const Gpu& gpu, const Stack& stack, const KernelRow& row, bool backward) {
  const double faster = gpu.peak.of(row.type).value_or(gpu.peak.bf16.value) / gpu.peak.bf16.value;
  const double products = gpu.gemm.rate.number() * gpu.gemm.sustained.number();
  if (row.kind == KernelClass::attention)
    return at_settled_clocks(gpu, row.flops / (attention_rate(gpu, row, backward) * faster *
                                               stack.kernels.attention.number()));
  if (row.unaligned && gpu.gemm.unaligned) return row.flops / gpu.gemm.unaligned->number();
  const auto& kernel =
      row.kind == KernelClass::grouped_gemm ? stack.kernels.grouped_gemm : stack.kernels.gemm;
  const double rate = products * kernel.number() * row.share * faster;
  const bool tiled = row.rows > 0 && gpu.units > 0;
  return tiled ? product_time(gpu, stack.operators.product, row, rate, faster) : row.flops / rate;
}

// A cache keeps what a kernel moves whole up to half of its size, and none of more than all of it.
double streaming_rate(const Gpu& gpu, const KernelRow& row) {
  const double memory = gpu.elementwise.bandwidth.number();
  if (!gpu.elementwise.cache) return memory;
  const Gpu::Elementwise::Cache& cache = *gpu.elementwise.cache;
  const double moved = row.bytes / std::max(1.0, row.launches);
  const double fits = std::clamp(2 - 2 * moved / cache.capacity.number(), 0.0, 1.0);
  const double found = fits * cache.found.number();
  return 1 / (found / cache.bandwidth.number() + (1 - found) / memory);
}

}  // namespace

KernelRow gemm(std::string_view name, double rows, double in, double out) {
  KernelRow row{name, KernelClass::gemm, 2 * rows * in * out,
                bytes_16 * (rows * in + in * out + rows * out)};
  row.rows = rows;
  row.width = out;
  row.depth = in;
  return row;
}

KernelRow grouped_gemm(std::string_view name, double groups, double rows, double in, double out) {
  KernelRow row = gemm(name, rows, in, out);
  row.kind = KernelClass::grouped_gemm;
  row.flops *= groups;
  row.bytes *= groups;
  row.groups = groups;
  return row;
}

KernelRow attention(std::string_view name, double queries, double keys, double heads,
                    double width) {
  KernelRow row{name, KernelClass::attention, 4 * queries * keys * heads * width};
  row.rows = queries;
  row.depth = keys;
  row.width = width;
  row.groups = heads;
  return row;
}

KernelRow memory(std::string_view name, double bytes, double launches) {
  return {name, KernelClass::memory, 0, bytes, launches};
}

KernelRow counted(const Operators& all, Operator op, double rows, double width, double times) {
  const Operators::Count& count = all[op];
  KernelRow row = memory(operator_names[static_cast<std::size_t>(op)], count.bytes * rows * width,
                         count.kernels * times);
  if (count.operators) row.operators = *count.operators * times;
  row.op = op;
  return row;
}

std::vector<KernelRow> backward_of(const std::vector<KernelRow>& forward, const Operators& all) {
  std::vector<KernelRow> backward;
  for (KernelRow row : forward) {
    const bool product = row.kind == KernelClass::gemm || row.kind == KernelClass::grouped_gemm;
    if (product && row.rows > 0) {
      KernelRow weights = row;
      weights.ragged = false;  // tokens are what is summed over
      weights.of_weights = true;
      std::swap(row.width, row.depth);
      std::swap(weights.rows, weights.depth);
      backward.push_back(row);
      backward.push_back(weights);
      continue;
    }
    const bool streams = row.kind != KernelClass::attention;
    const double factor = streams ? all.backward.streaming : all.backward.attention;
    row.flops *= factor;
    row.bytes *= factor;
    if (streams) {
      row.launches *= factor;
      if (row.operators) *row.operators *= factor;
    }
    backward.push_back(row);
  }
  return backward;
}

std::vector<KernelRow> half_of_backward(const std::vector<KernelRow>& rows, bool of_weights) {
  std::vector<KernelRow> part;
  for (KernelRow row : rows) {
    const bool product = row.kind == KernelClass::gemm || row.kind == KernelClass::grouped_gemm;
    if (product && row.rows > 0) {  // a row for each of them
      if (row.of_weights == of_weights) part.push_back(row);
      continue;
    }
    if (!product && of_weights) continue;
    if (product) {
      row.flops /= 2;
      row.bytes /= 2;
      row.launches /= 2;
      if (row.operators) *row.operators /= 2;
    }
    part.push_back(row);
  }
  return part;
}

std::vector<KernelRow> frozen_backward_of(const std::vector<KernelRow>& forward,
                                          const Operators& all) {
  std::vector<KernelRow> backward;
  for (const KernelRow& row : forward) {
    if (row.op == Operator::unpack) {
      backward.push_back(row);
      continue;
    }
    const std::vector<KernelRow> both = backward_of({row}, all);
    // Its input's gradient comes first.
    const bool product = row.kind == KernelClass::gemm || row.kind == KernelClass::grouped_gemm;
    backward.insert(backward.end(), both.begin(), product ? both.begin() + 1 : both.end());
    if (product && both.size() == 1) backward.back() = row;  // a product of no known shape
  }
  return backward;
}

double flops_of(const std::vector<KernelRow>& rows) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.repeats * row.flops;
  return sum;
}

double launches_of(const std::vector<KernelRow>& rows) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.repeats * row.launches;
  return sum;
}

double operators_of(const std::vector<KernelRow>& rows, const Operators& all) {
  double sum = 0;
  for (const KernelRow& row : rows)
    sum += row.repeats * row.operators.value_or(row.launches) *
           (row.kind == KernelClass::memory ? 1 : all.product.operators);
  return sum;
}

DeviceTime device_times(const Gpu& gpu, const Stack& stack, const std::vector<KernelRow>& rows,
                        bool backward) {
  double time = 0, arithmetic = 0;
  for (const KernelRow& row : rows) {
    const bool streams = row.kind == KernelClass::memory;
    const double bandwidth =
        streams ? streaming_rate(gpu, row) * stack.kernels.memory.number() * row.share
                : gpu.gemm.bandwidth.number();
    const double start = (streams ? gpu.elementwise.start : gpu.gemm.start).number();
    const double busy = row.flops > 0 ? arithmetic_time(gpu, stack, row, backward) : 0;
    const double least = std::max(row.bytes / bandwidth, row.least.value);
    time += row.repeats * (row.launches * start + std::max(busy, least));
    if (busy > least) arithmetic += row.repeats * busy;
  }
  return {{time}, {arithmetic}};
}

Seconds device_time(const Gpu& gpu, const Stack& stack, const std::vector<KernelRow>& rows,
                    bool backward) {
  return device_times(gpu, stack, rows, backward).all;
}

}  // namespace stepsim
