// Single kernels as tables name them, and GPUs on which nothing else runs.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "scenarios/rows/measured.hpp"
#include "topology/gpu.hpp"
#include "workloads/kernels/kernels.hpp"

namespace stepsim {

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
