#include "analysis/studies/fidelity/kernel_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "analysis/studies/fidelity/kernel_bench.hpp"
#include "analysis/studies/fidelity/robust_fit.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

KernelFamily family_of(const std::string& name, const std::vector<const TimedKernel*>& members) {
  KernelFamily family{name, members.size(), 0, 0, 0, "", 0};
  std::vector<double> sizes;
  sizes.reserve(members.size());
  for (const TimedKernel* kernel : members) {
    const double error = kernel->error();
    sizes.push_back(std::abs(error));
    family.signed_mean += error / static_cast<double>(members.size());
    if (std::abs(error) <= std::abs(family.worst_error)) continue;
    family.worst = kernel->id;
    family.worst_error = error;
  }
  std::ranges::sort(sizes);
  family.median = quantile(sizes, 0.5);
  family.p90 = quantile(sizes, 0.9);
  return family;
}

// This says what of a GPU is free, and how far: nothing beats the fastest product that was seen.
struct FreeOfGpu {
  std::string_view name;
  double& (*of)(Gpu&);
  double low, high;  // as shares of the stated value
  bool capped = false;
  std::string_view tera = "TFLOP/s";  // the unit of a rate
};
constexpr int kernel_rounds = 6;
constexpr double kernel_nudge = 0.02;  // of a constant, as a logarithm
const std::array<FreeOfGpu, 3> free_of_products{{
    {"gemm.rate", [](Gpu& gpu) -> double& { return gpu.gemm.rate.value.value; }, 0.7, 1.4, true},
    {"gemm.fill", [](Gpu& gpu) -> double& { return gpu.gemm.fill.value.value; }, 0.15, 2},
    {"gemm.small_tile", [](Gpu& gpu) -> double& { return gpu.gemm.small_tile.value.value; }, 0.75,
     1.04},
}};

const std::array<FreeOfGpu, 1> free_of_grouped{{
    {"gemm.grouped.operands",
     [](Gpu& gpu) -> double& { return gpu.gemm.grouped->operands.value.value; }, 0.3, 3, false,
     "TB/s"},
}};

template <bool later>
Gpu::Attention::Kernel& kernel_of(Gpu& gpu) {
  return later ? *gpu.attention.later : gpu.attention.flash;
}
template <bool later>
const std::array<FreeOfGpu, 7> free_of_attention{{
    {"forward", [](Gpu& gpu) -> double& { return kernel_of<later>(gpu).forward.value.value; }, 0.5,
     2},
    {"backward", [](Gpu& gpu) -> double& { return kernel_of<later>(gpu).backward.value.value; },
     0.5, 2},
    {"forward_overhead",
     [](Gpu& gpu) -> double& { return kernel_of<later>(gpu).forward_overhead.value.value; }, 0.2,
     5},
    {"backward_overhead",
     [](Gpu& gpu) -> double& { return kernel_of<later>(gpu).backward_overhead.value.value; }, 0.2,
     5},
    {"wide", [](Gpu& gpu) -> double& { return kernel_of<later>(gpu).wide.value.value; }, 0.5, 2},
    {"attention.head_overhead",
     [](Gpu& gpu) -> double& { return gpu.attention.head_overhead.value.value; }, 0.2, 5},
    {"attention.tail", [](Gpu& gpu) -> double& { return gpu.attention.tail.value.value; }, 0.2, 5},
}};

// One of the rows of a source weighs nothing while that source is left out.
struct CurveFit {
  std::span<const FreeOfGpu> free;
  std::vector<const TimedKernel*> rows;
  std::vector<double> weights;
  double best_rate = 0;
};

KernelBench with_moved(KernelBench bench, std::span<const FreeOfGpu> free,
                       const std::vector<double>& step) {
  for (std::size_t i = 0; i < free.size(); ++i) free[i].of(bench.gpu) *= std::exp(step[i]);
  return bench;
}

RobustFit bounds_around(const KernelBench& stated, const KernelBench& now,
                        const CurveFit& problem) {
  RobustFit fit;
  fit.turn = 0.1;
  fit.prior = 1;
  Gpu from = stated.gpu, at = now.gpu;
  fit.low.reserve(problem.free.size());
  fit.high.reserve(problem.free.size());
  for (const FreeOfGpu& free : problem.free) {
    const double most = free.of(from) * free.high;
    fit.low.push_back(std::log(free.of(from) * free.low / free.of(at)));
    fit.high.push_back(
        std::log((free.capped ? std::min(most, problem.best_rate) : most) / free.of(at)));
  }
  return fit;
}

RobustFit::Row line_of(const KernelBench& bench, std::span<const FreeOfGpu> free,
                       const TimedKernel& kernel, double weight) {
  const double here = bench.time(kernel);
  RobustFit::Row line{std::log(here / kernel.measured), weight, std::vector<double>(free.size())};
  for (std::size_t i = 0; i < free.size(); ++i) {
    std::vector<double> step(free.size(), 0.0);
    step[i] = kernel_nudge;
    line.slopes[i] = std::log(with_moved(bench, free, step).time(kernel) / here) / kernel_nudge;
  }
  return line;
}

KernelBench fitted(const KernelBench& stated, const CurveFit& problem) {
  KernelBench bench = stated;
  for (int round = 0; round < kernel_rounds; ++round) {
    RobustFit fit = bounds_around(stated, bench, problem);
    fit.rows.reserve(problem.rows.size());
    for (std::size_t row = 0; row < problem.rows.size(); ++row)
      fit.rows.push_back(line_of(bench, problem.free, *problem.rows[row], problem.weights[row]));
    bench = with_moved(bench, problem.free, solve(fit));
  }
  return bench;
}

double median_error(const KernelBench& bench, const std::vector<const TimedKernel*>& rows) {
  std::vector<double> sizes = mapped(
      rows, [&](const TimedKernel* row) { return std::abs(bench.time(*row) / row->measured - 1); });
  std::ranges::sort(sizes);
  return quantile(sizes, 0.5);
}

// Returns the problem without some rows.
CurveFit without(const CurveFit& problem, const std::function<bool(std::size_t)>& left_out) {
  CurveFit others = problem;
  for (std::size_t i = 0; i < others.rows.size(); ++i)
    if (left_out(i)) others.weights[i] = 0;
  return others;
}

std::vector<FittedSource> by_source(const KernelBench& stated, const KernelBench& all,
                                    const CurveFit& problem, std::vector<KernelBench>& parts) {
  std::map<std::string, std::vector<const TimedKernel*>> sources;
  for (const TimedKernel* row : problem.rows) sources[row->source].push_back(row);
  std::vector<FittedSource> result;
  for (const auto& each : sources) {
    const std::string& name = each.first;
    const std::vector<const TimedKernel*>& rows = each.second;
    FittedSource source{name, rows.size(), median_error(stated, rows), median_error(all, rows), 0};
    if (sources.size() > 1) {
      parts.push_back(fitted(stated, without(problem, [&](std::size_t i) {
                               return problem.rows[i]->source == name;
                             })));
      source.held_out = median_error(parts.back(), rows);
    }
    result.push_back(std::move(source));
  }
  if (sources.size() == 1)
    for (const std::size_t half : {std::size_t{0}, std::size_t{1}})
      parts.push_back(
          fitted(stated, without(problem, [&](std::size_t i) { return i % 2 == half; })));
  return result;
}

FittedCurve curve_of(const KernelBench& stated, const CurveFit& problem, FittedCurve curve) {
  const KernelBench best = fitted(stated, problem);
  Gpu from = stated.gpu, to = best.gpu;
  curve.best_rate = problem.best_rate;
  std::vector<KernelBench> parts;
  curve.sources = by_source(stated, best, problem, parts);
  for (const FreeOfGpu& free : problem.free) {
    CurveConstant constant{
        std::string(free.name), free.of(from), free.of(to), free.of(to), free.of(to),
        std::string(free.tera)};
    for (KernelBench& part : parts) {
      constant.low = std::min(constant.low, free.of(part.gpu));
      constant.high = std::max(constant.high, free.of(part.gpu));
    }
    if (constant.name.find('.') == std::string::npos)
      constant.name = fmt::format("{}.{}", curve.kernels, constant.name);
    curve.constants.push_back(std::move(constant));
  }
  return curve;
}

// These are forward products alone: a weight's gradient and an input's are the same curve, measured
// elsewhere.
struct CurveKind {
  std::string_view name;
  std::span<const FreeOfGpu> free;
  bool (*holds)(const TimedKernel&, const Gpu&);
};
const std::array<CurveKind, 4> curve_kinds{{
    {"matrix products", free_of_products,
     [](const TimedKernel& k, const Gpu&) { return k.kind == "gemm"; }},
    {"grouped products", free_of_grouped,
     [](const TimedKernel& k, const Gpu& gpu) {
       return k.kind == "grouped_gemm" && gpu.gemm.grouped.has_value();
     }},
    {"attention", free_of_attention<false>,
     [](const TimedKernel& k, const Gpu&) {
       return k.work.kind == KernelClass::attention && !k.work.later;
     }},
    {"attention.later", free_of_attention<true>,
     [](const TimedKernel& k, const Gpu&) {
       return k.work.kind == KernelClass::attention && k.work.later;
     }},
}};

// "h100" is the beginning of several names: the one that most kernels were measured on.
std::string fullest_name(const std::vector<TimedKernel>& kernels, const std::string& begin) {
  std::map<std::string, std::size_t> counts;
  for (const TimedKernel& kernel : kernels)
    if (kernel.gpu.starts_with(begin + "-")) counts[kernel.gpu] += 1;
  const auto most = std::ranges::max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? begin : most->first;
}

}  // namespace

KernelTimes predict_kernels(const Catalogue& data, std::span<const CsvTable> tables) {
  MeasuredKernels read = read_kernels(data, tables);
  for (TimedKernel& kernel : read.kernels)
    kernel.predicted = read.benches.at(kernel.gpu).time(kernel);
  return {std::move(read.kernels), std::move(read.skipped)};
}

std::vector<KernelFamily> families_of(const std::vector<TimedKernel>& kernels) {
  std::map<std::string, std::vector<const TimedKernel*>> families;
  std::vector<const TimedKernel*> all;
  for (const TimedKernel& kernel : kernels) {
    families[fmt::format("{} {}", kernel.gpu, kernel.kind)].push_back(&kernel);
    all.push_back(&kernel);
  }
  std::vector<KernelFamily> result;
  result.reserve(families.size() + 1);
  for (const auto& [name, members] : families) result.push_back(family_of(name, members));
  if (!all.empty()) result.push_back(family_of("all", all));
  return result;
}

std::vector<FittedCurve> fit_kernels(const Catalogue& data, std::span<const CsvTable> tables,
                                     const std::string& gpu) {
  const MeasuredKernels read = read_kernels(data, tables);
  std::vector<FittedCurve> curves;
  for (const CurveKind& kind : curve_kinds) {
    CurveFit problem{kind.free, {}, {}, 0};
    for (const TimedKernel& kernel : read.kernels) {
      if (kernel.gpu != gpu || !kind.holds(kernel, read.benches.at(gpu).gpu)) continue;
      problem.rows.push_back(&kernel);
      problem.weights.push_back(1);
      problem.best_rate = std::max(problem.best_rate, kernel.work.flops / kernel.measured);
    }
    if (!problem.rows.empty())
      curves.push_back(curve_of(read.benches.at(gpu), problem,
                                {gpu, std::string(kind.name), problem.best_rate, {}, {}}));
  }
  if (!curves.empty()) return curves;
  std::vector<std::string> known;
  known.reserve(read.benches.size());
  for (const auto& [name, bench] : read.benches) known.push_back(name);
  throw UserError(fmt::format("no kernel was measured on a GPU \"{}\"{}; there are those of {}",
                              gpu, did_you_mean(fullest_name(read.kernels, gpu), known),
                              one_of(known)));
}

}  // namespace stepsim
