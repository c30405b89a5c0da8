#include "workloads/kernels.hpp"

#include <algorithm>

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

double attention_rate(const Gpu& gpu, bool backward) {
  return backward ? gpu.attention.backward.value.value : gpu.attention.forward.value.value;
}

}  // namespace

KernelRow gemm(std::string_view name, double rows, double in, double out) {
  return {name, KernelClass::gemm, 2 * rows * in * out, half * (rows * in + in * out + rows * out),
          1};
}

KernelRow memory(std::string_view name, double bytes, double launches) {
  return {name, KernelClass::memory, 0, bytes, launches};
}

std::vector<KernelRow> backward_of(const std::vector<KernelRow>& forward) {
  std::vector<KernelRow> backward = forward;
  for (KernelRow& row : backward) {
    const double factor = row.kind == KernelClass::attention ? 2.5 : 2;
    row.flops *= factor;
    row.bytes *= factor;
    if (row.kind == KernelClass::attention) continue;
    row.launches *= 2;
    if (row.operators) *row.operators *= 2;
  }
  return backward;
}

double flops_of(const std::vector<KernelRow>& rows) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.flops;
  return sum;
}

double launches_of(const std::vector<KernelRow>& rows) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.launches;
  return sum;
}

double operators_of(const std::vector<KernelRow>& rows) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.operators.value_or(row.launches);
  return sum;
}

Seconds device_time(const Gpu& gpu, const Stack& stack, const std::vector<KernelRow>& rows,
                    bool backward) {
  double time = 0;
  for (const KernelRow& row : rows) {
    const double gemm_rate = gpu.gemm.rate.value.value * gpu.gemm.sustained.value.value;
    double start = gpu.gemm.start.value.value, rate = gemm_rate * stack.kernels.gemm.value.value;
    double bandwidth = gpu.gemm.bandwidth.value.value;
    if (row.kind == KernelClass::grouped_gemm)
      rate = gemm_rate * stack.kernels.grouped_gemm.value.value;
    if (row.kind == KernelClass::attention)
      rate = attention_rate(gpu, backward) * stack.kernels.attention.value.value;
    if (row.kind == KernelClass::memory) {
      start = gpu.elementwise.start.value.value;
      bandwidth = gpu.elementwise.bandwidth.value.value * stack.kernels.memory.value.value;
    }
    rate *= row.share;
    time += row.launches * start + std::max(row.flops / rate, row.bytes / bandwidth);
  }
  return {time};
}

}  // namespace stepsim
