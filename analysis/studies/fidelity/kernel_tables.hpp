// This holds published times of single kernels against what their GPU's file gives.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/rows/measured.hpp"
#include "topology/gpu.hpp"
#include "workloads/kernels/kernels.hpp"

namespace stepsim {

// Reads the tables that are named; if none is, those of the catalogue.
std::vector<CsvTable> read_kernel_tables(const Catalogue& data, std::span<const std::string> files);

struct TimedKernel {
  std::string id, source, gpu;  // the GPU by its name in the catalogue
  std::string kind;             // the operator, and which of its products in training
  KernelRow work;
  bool backward = false;               // of attention
  double measured = 0, predicted = 0;  // s

  double error() const { return predicted / measured - 1; }
};
struct SkippedKernel {
  std::string id, reason;
};
struct PredictedKernels {
  std::vector<TimedKernel> kernels;
  std::vector<SkippedKernel> skipped;
};
// Predicts matrix products, grouped ones and attention. Single kernels are alone: clocks have not
// fallen yet, and no stack stands in between.
PredictedKernels predict_kernels(const Catalogue& data, std::span<const CsvTable> tables);

// A family is the rows of a GPU and kind; the last one is all of them.
struct KernelFamily {
  std::string name;
  std::size_t rows = 0;
  double median = 0, p90 = 0, signed_mean = 0;  // of the errors
  std::string worst;
  double worst_error = 0;
};
std::vector<KernelFamily> families_of(const std::vector<TimedKernel>& kernels);

// A GPU as it is for a moment, under a stack that adds nothing.
struct KernelBench {
  Gpu gpu;
  Stack stack;
  double sustained;  // of the GPU's file: what a product in a long run reaches of that

  KernelBench(const Gpu& measured, const Operators& operators);
  double time(const TimedKernel& kernel) const;
};

struct MeasuredKernels {
  std::vector<TimedKernel> kernels;  // none of them predicted
  std::vector<SkippedKernel> skipped;
  std::map<std::string, KernelBench> benches;  // by GPU
};
// Throws UserError naming every cell that is no number.
MeasuredKernels read_kernels(const Catalogue& data, std::span<const CsvTable> tables);

}  // namespace stepsim
