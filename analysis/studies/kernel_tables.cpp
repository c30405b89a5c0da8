#include "analysis/studies/kernel_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/studies/robust_fit.hpp"
#include "analysis/studies/validation.hpp"
#include "scenarios/rows/row_catalog.hpp"
#include "sim/error.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

// A GPU as it is for a moment, under a stack that adds nothing.
struct Bench {
  Gpu gpu;
  Stack stack;

  explicit Bench(const Gpu& measured) : gpu(measured) {
    gpu.gemm.sustained.value = {1};
    stack.kernels.gemm.value = stack.kernels.attention.value = {1};
    stack.kernels.memory.value = stack.kernels.grouped_gemm.value = {1};
  }
  double time(const KernelRow& row) const { return device_time(gpu, stack, {row}, false).value; }
};

// Weights' gradients are added up in 32 bits: read and written.
double output_bytes(std::string_view dtype) {
  return dtype.ends_with("fp32") ? 8 : 2;
}

std::optional<KernelRow> work_of(NumberReader& number, const CsvTable::Row& row) {
  const std::string_view op = number.table.cell(row, "op");
  const double m = number(row, "M"), n = number(row, "N"), k = number(row, "K");
  if ((op != "gemm" && op != "batched_gemm") || m <= 0 || n <= 0 || k <= 0) return {};
  const double batch = number.count(row, "batch");
  KernelRow work = gemm("product", batch * m, k, n);
  work.bytes =
      2 * batch * (m * k + k * n) + output_bytes(number.table.cell(row, "dtype")) * batch * m * n;
  return work;
}

double seconds_of(NumberReader& number, const CsvTable::Row& row, const KernelRow& work) {
  if (const double time = number(row, "time_ms"); time > 0) return time / 1e3;
  const double rate = number(row, "tflops") * 1e12;
  return rate > 0 ? work.flops / rate : 0;
}

// With a transposed second operand: forward; with none: the input's gradient; with the first: the
// weights'.
std::string kind_of(std::string_view op, std::string_view layout) {
  if (layout.starts_with("NT")) return fmt::format("{} for weights", op);
  if (layout == "NN") return fmt::format("{} for inputs", op);
  return std::string(op);
}

struct Measured {
  std::vector<TimedKernel> kernels;
  std::vector<SkippedKernel> skipped;
  std::map<std::string, Bench> benches;  // by GPU
};

Measured read_kernels(const std::string& data, const CsvTable& table) {
  Measured read;
  const RowCatalog catalog = row_catalog(data);
  NumberReader number{table, {}};
  for (const CsvTable::Row& row : table.rows) {
    const std::string id(table.cell(row, "id"));
    const std::string_view hardware = table.cell(row, "hardware"), op = table.cell(row, "op");
    const RowCatalog::NodeSize* node = catalog.node(best_name(catalog.machines.nodes, hardware));
    const std::optional<KernelRow> work = work_of(number, row);
    const double seconds = work ? seconds_of(number, row, *work) : 0;
    if (node == nullptr) {
      read.skipped.push_back({id, fmt::format("no GPU \"{}\" in the catalogue", hardware)});
    } else if (!work) {
      read.skipped.push_back({id, fmt::format("{} is no matrix product of known shape", op)});
    } else if (seconds <= 0) {
      read.skipped.push_back({id, "no time"});
    } else {
      if (!read.benches.contains(node->gpu))
        read.benches.emplace(node->gpu, load_cluster(data, {.name = node->name}).gpu);
      read.kernels.push_back({id, std::string(table.cell(row, "source")), node->gpu,
                              kind_of(op, table.cell(row, "layout")), *work, seconds, 0});
    }
  }
  if (!number.problems.empty()) throw UserError(number.problems);
  return read;
}

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
  std::sort(sizes.begin(), sizes.end());
  family.median = quantile(sizes, 0.5);
  family.p90 = quantile(sizes, 0.9);
  return family;
}

// What of a GPU is free, and how far: nothing beats the fastest product that was seen.
struct FreeOfGpu {
  std::string_view name;
  double& (*of)(Gpu&);
  double low, high;  // as shares of the stated value
};
constexpr int rounds = 6;
constexpr double nudge = 0.02;  // of a constant, as a logarithm
const std::array<FreeOfGpu, 3> free_constants{{
    {"gemm.rate", [](Gpu& gpu) -> double& { return gpu.gemm.rate.value.value; }, 0.7, 1.4},
    {"gemm.fill", [](Gpu& gpu) -> double& { return gpu.gemm.fill.value.value; }, 0.15, 2},
    {"gemm.small_tile", [](Gpu& gpu) -> double& { return gpu.gemm.small_tile.value.value; }, 0.75,
     1.04},
}};

// One of the rows of a source weighs nothing while that source is left out.
struct CurveFit {
  std::vector<const TimedKernel*> rows;
  std::vector<double> weights;
  double best_rate = 0;
};

Bench moved(Bench bench, const std::vector<double>& step) {
  for (std::size_t i = 0; i < free_constants.size(); ++i)
    free_constants[i].of(bench.gpu) *= std::exp(step[i]);
  return bench;
}

RobustFit bounds_around(const Bench& stated, const Bench& now, double best_rate) {
  RobustFit fit;
  fit.turn = 0.1;
  fit.prior = 1;
  Gpu from = stated.gpu, at = now.gpu;
  fit.low.reserve(free_constants.size());
  fit.high.reserve(free_constants.size());
  for (const FreeOfGpu& free : free_constants) {
    const bool rate = &free == &free_constants.front();
    const double most = free.of(from) * free.high;
    fit.low.push_back(std::log(free.of(from) * free.low / free.of(at)));
    fit.high.push_back(std::log((rate ? std::min(most, best_rate) : most) / free.of(at)));
  }
  return fit;
}

RobustFit::Row line_of(const Bench& bench, const TimedKernel& kernel, double weight) {
  const double here = bench.time(kernel.work);
  RobustFit::Row line{std::log(here / kernel.measured), weight,
                      std::vector<double>(free_constants.size())};
  for (std::size_t i = 0; i < free_constants.size(); ++i) {
    std::vector<double> step(free_constants.size(), 0.0);
    step[i] = nudge;
    line.slopes[i] = std::log(moved(bench, step).time(kernel.work) / here) / nudge;
  }
  return line;
}

Bench fitted(const Bench& stated, const CurveFit& problem) {
  Bench bench = stated;
  for (int round = 0; round < rounds; ++round) {
    RobustFit fit = bounds_around(stated, bench, problem.best_rate);
    fit.rows.reserve(problem.rows.size());
    for (std::size_t row = 0; row < problem.rows.size(); ++row)
      fit.rows.push_back(line_of(bench, *problem.rows[row], problem.weights[row]));
    bench = moved(bench, solve(fit));
  }
  return bench;
}

double median_error(const Bench& bench, const std::vector<const TimedKernel*>& rows) {
  std::vector<double> sizes;
  sizes.reserve(rows.size());
  for (const TimedKernel* row : rows)
    sizes.push_back(std::abs(bench.time(row->work) / row->measured - 1));
  std::sort(sizes.begin(), sizes.end());
  return quantile(sizes, 0.5);
}

std::vector<CurveSource> by_source(const Bench& stated, const Bench& all, const CurveFit& problem) {
  std::map<std::string, std::vector<const TimedKernel*>> sources;
  for (const TimedKernel* row : problem.rows) sources[row->source].push_back(row);
  std::vector<CurveSource> result;
  for (const auto& [name, rows] : sources) {
    CurveSource source{name, rows.size(), median_error(stated, rows), median_error(all, rows), 0};
    if (sources.size() > 1) {
      CurveFit others = problem;
      for (std::size_t i = 0; i < others.rows.size(); ++i)
        if (others.rows[i]->source == name) others.weights[i] = 0;
      source.held_out = median_error(fitted(stated, others), rows);
    }
    result.push_back(std::move(source));
  }
  return result;
}

}  // namespace

KernelTimes predict_kernels(const std::string& data, const CsvTable& table) {
  Measured read = read_kernels(data, table);
  for (TimedKernel& kernel : read.kernels)
    kernel.predicted = read.benches.at(kernel.gpu).time(kernel.work);
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

FittedCurve fit_products(const std::string& data, const CsvTable& table, const std::string& gpu) {
  const Measured read = read_kernels(data, table);
  CurveFit problem;
  FittedCurve curve{gpu, 0, {}, {}};
  for (const TimedKernel& kernel : read.kernels) {
    if (kernel.gpu != gpu || kernel.kind != "gemm") continue;
    problem.rows.push_back(&kernel);
    problem.weights.push_back(1);
    problem.best_rate = std::max(problem.best_rate, kernel.work.flops / kernel.measured);
  }
  if (problem.rows.empty()) {
    std::vector<std::string> known;
    known.reserve(read.benches.size());
    for (const auto& [name, bench] : read.benches) known.push_back(name);
    throw UserError(fmt::format("{} has no matrix product of a GPU \"{}\"{}; it has those of {}",
                                table.file, gpu, did_you_mean(gpu, known), one_of(known)));
  }
  Bench stated = read.benches.at(gpu);
  Bench best = fitted(stated, problem);
  curve.best_rate = problem.best_rate;
  for (const FreeOfGpu& free : free_constants)
    curve.constants.push_back({std::string(free.name), free.of(stated.gpu), free.of(best.gpu)});
  curve.sources = by_source(stated, best, problem);
  return curve;
}

}  // namespace stepsim
