// This holds published times of single kernels against what their GPU's file gives, and finds which
// constants of that file would meet them best.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/robust_fit.hpp"
#include "scenarios/rows/measured.hpp"
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
struct KernelTimes {
  std::vector<TimedKernel> kernels;
  std::vector<SkippedKernel> skipped;
};
// Predicts matrix products, grouped ones and attention. Single kernels are alone: clocks have not
// fallen yet, and no stack stands in between.
KernelTimes predict_kernels(const Catalogue& data, std::span<const CsvTable> tables);

// A family is the rows of a GPU and kind; the last one is all of them.
struct KernelFamily {
  std::string name;
  std::size_t rows = 0;
  double median = 0, p90 = 0, signed_mean = 0;  // of the errors
  std::string worst;
  double worst_error = 0;
};
std::vector<KernelFamily> families_of(const std::vector<TimedKernel>& kernels);

// The curve of matrix products has these: rate, what filling a tile costs, small tiles. That of an
// attention kernel has rates, what a row more costs, wide heads, and units that wait at the end.
struct CurveConstant {
  std::string name;  // in the GPU's file: "gemm.rate"
  double stated = 0, fitted = 0;
  double low = 0, high = 0;  // fitted without one source, or to half of the rows of a single one
  std::string tera = {};     // the unit of 1e12, if it is a rate
};
struct FittedCurve {
  std::string gpu;
  std::string kernels;   // which of them
  double best_rate = 0;  // FLOP/s: the fastest row; of products no curve may exceed it
  std::vector<CurveConstant> constants;
  std::vector<FittedSource> sources;
};
// Robust least squares over what was measured on this GPU: a curve for its products, and one for
// each attention kernel.
std::vector<FittedCurve> fit_kernels(const Catalogue& data, std::span<const CsvTable> tables,
                                     const std::string& gpu);

}  // namespace stepsim
