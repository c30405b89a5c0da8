// A device runs kernels; this says by their work how long a GPU under a stack takes for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/gpu.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

enum class KernelClass : std::uint8_t { gemm, grouped_gemm, attention, memory };

// A row is equal kernels: `launches` of them share the work.
struct KernelRow {
  std::string_view name;
  KernelClass kind = KernelClass::memory;
  double flops = 0;
  double bytes = 0;  // to and from device memory
  double launches = 1;
  // The host dispatches so many operators for them; unless said, one per kernel. A sort is one
  // operator of several kernels; a result taken from a cache is an operator without any.
  std::optional<double> operators = {};
  // A matrix product is [rows x depth] times [depth x width]; in attention `rows` are queries,
  // `depth` the keys that each sees in the mean, and `width` that of a head. 0: the kernel runs at
  // its best rate.
  double rows = 0, width = 0, depth = 0;
  double share = 1;         // of the rate that the tuned kernel of this class reaches
  double groups = 1;        // as many such products, or heads, in one kernel
  bool ragged = false;      // of unequal rows: `rows` are those of the mean
  bool of_weights = false;  // the product of a backward pass that gives the weights' gradient
  bool unaligned = false;   // rows of an operand begin at no multiple of 16 bytes
  bool later = false;       // attention: the kernel of this generation of GPUs
  // This share of that kernel's rate is left behind a mask of pairs; a GPU without such a kernel
  // has `share` of the older one's. 0: there is no mask.
  double masked = 0;
  ProductType type = ProductType::bf16;  // in which a product runs
  Seconds least{0};                      // for as long it computes, however little it streams
  Operator op = Operator::none;
  double repeats = 1;  // all of this so many times, one after the other
};

// Returns a matrix product over `rows` rows of 16-bit numbers.
KernelRow gemm(std::string_view name, double rows, double in, double out);
// Returns one such product for each of `groups`, in one kernel.
KernelRow grouped_gemm(std::string_view name, double groups, double rows, double in, double out);
// Scores of each query with the `keys` that it sees in the mean, and their values, for each head.
KernelRow attention(std::string_view name, double queries, double keys, double heads, double width);
// Returns a kernel that only streams through device memory, such as copies whose bytes are what
// they are.
KernelRow memory(std::string_view name, double bytes, double launches);
// An operator over rows x width numbers that comes so many times.
KernelRow counted(const Operators& all, Operator op, double rows, double width = 1,
                  double times = 1);

// Returns the backward pass: a matrix product turns into two, one for its input's gradient and one
// for its weights'; other kernels cost so many times as much as the operators' file says.
std::vector<KernelRow> backward_of(const std::vector<KernelRow>& forward, const Operators& all);
// Returns the half of these rows that gives the gradients of inputs, with all that is no product,
// or the half that gives those of weights.
std::vector<KernelRow> half_of_backward(const std::vector<KernelRow>& rows, bool of_weights);
// Returns the backward pass with frozen weights: a product turns into one, and weights that were
// unpacked are so again.
std::vector<KernelRow> frozen_backward_of(const std::vector<KernelRow>& forward,
                                          const Operators& all);

double flops_of(const std::vector<KernelRow>& rows);
double launches_of(const std::vector<KernelRow>& rows);
double operators_of(const std::vector<KernelRow>& rows, const Operators& all);

struct DeviceTime {
  Seconds all;
  Seconds arithmetic;  // of it, where products and attention keep the units busy
};
DeviceTime device_times(const Gpu& gpu, const Stack& stack, const std::vector<KernelRow>& rows,
                        bool backward);
// Returns the device seconds of rows that run one after the other and alone.
Seconds device_time(const Gpu& gpu, const Stack& stack, const std::vector<KernelRow>& rows,
                    bool backward);

}  // namespace stepsim
